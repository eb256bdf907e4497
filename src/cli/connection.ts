import { readFileSync, statSync } from 'node:fs'
import { type Config, readConfig } from '../config.ts'
import { Secret } from '../kernel/secret.ts'
import { createHttpClient } from './http-client.ts'
import type { ManagementClient } from './management-client.ts'
import { Failure, UsageError } from './run-command.ts'

/** The options by which a command is told whom to ask. */
export const CONNECTION_OPTIONS = {
  url: { type: 'string' },
  'admin-key-file': { type: 'string' },
} as const

export const CONNECTION_HELP = `Where
  Without --url it works on the data directory (TOLLGATE_DATA_DIR), or on the database of TOLLGATE_DATABASE_URL, beside
  running gateways or without one. Calls that wait in a running gateway notice a change made there within a second.
  --url <url>               ask the gateway at this address instead, such as http://127.0.0.1:8787
  --admin-key-file <file>   a file with its admin key; without it, the key is that of TOLLGATE_ADMIN_KEY
`

export const EXIT_HELP = `Exit codes
  0 done   1 failed or refused   2 the command line or the configuration is wrong
`

interface Connection {
  readonly url?: string | undefined
  readonly 'admin-key-file'?: string | undefined
}

/** Opens what is to be asked, lets the work be done, and closes it whatever came of it. */
export async function withClient(
  connection: Connection,
  work: (client: ManagementClient) => Promise<void>,
): Promise<void> {
  const client = await openClient(connection, readConfig(process.env))
  try {
    await work(client)
  } finally {
    await client.close()
  }
}

async function openClient(connection: Connection, config: Config): Promise<ManagementClient> {
  const { url, 'admin-key-file': keyFile } = connection
  if (url === undefined) {
    if (keyFile !== undefined)
      throw new UsageError('--admin-key-file is for --url; the data directory needs no key')
    // Half of the program, and over HTTP it is not needed.
    const { openLocalClient } = await import('./local-client.ts')
    return await openLocalClient(config)
  }
  return createHttpClient(readUrl(url), keyFile === undefined ? configuredKey(config) : readKey(keyFile))
}

function readUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null
  const isPlain = url !== null && `${url.username}${url.password}${url.search}${url.hash}` === ''
  if (url !== null && isPlain && /^https?:$/.test(url.protocol)) return url
  throw new UsageError(
    '--url must be an address such as http://127.0.0.1:8787, without user, query or fragment',
  )
}

function configuredKey({ adminKey }: Config): Secret {
  if (adminKey !== null) return adminKey
  throw new UsageError(
    '--url needs an admin key: name its file with --admin-key-file, or set TOLLGATE_ADMIN_KEY',
  )
}

const KEY_FILE_BYTES_MAX = 4_096

function readKey(file: string): Secret {
  let text: string
  try {
    if (statSync(file).size > KEY_FILE_BYTES_MAX) throw new Error('it is too large for a key')
    text = readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new Failure(`--admin-key-file: ${file} cannot be read: ${(error as Error).message}`)
  }
  if (!/^[\x21-\x7e]+$/.test(text)) throw new Failure(`--admin-key-file: there is no key in ${file}.`)
  return new Secret(text)
}
