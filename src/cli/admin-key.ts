import { parseArgs } from 'node:util'
import { type Config, ConfigError, readConfig } from '../config.ts'
import { InstallationError, openStore } from '../installation.ts'
import { systemClock } from '../kernel/clock.ts'
import { createUlidSource } from '../kernel/ids.ts'
import type { DigestKey } from '../keys/key-digest.ts'
import { mintKey, shownParts } from '../keys/key-format.ts'
import type { KeyStore } from '../keys/key-store.ts'

const USAGE = `Usage
  tollgate admin-key create [--name <label>]   create an admin key; it is printed once
  tollgate admin-key list                      list the admin keys, without their secrets
  tollgate admin-key revoke <id>               revoke one; it stops working at once

Works on the data directory (TOLLGATE_DATA_DIR), beside a running gateway or without one.
`

interface Tools {
  readonly config: Config
  readonly store: KeyStore
  readonly digestKey: DigestKey
}

/** Manages admin keys locally on the host: whoever can read the data directory is the operator. */
export async function adminKey(args: readonly string[]): Promise<void> {
  const [action, ...rest] = args
  try {
    if (action === 'create') await withStore((tools) => create(rest, tools))
    else if (action === 'list') await withStore((tools) => list(rest, tools))
    else if (action === 'revoke') await withStore((tools) => revoke(rest, tools))
    else if (action === undefined || action === '--help' || action === '-h') process.stdout.write(USAGE)
    else throw new UsageError(`there is no action "${action}"`)
  } catch (error) {
    if (error instanceof UsageError || (error instanceof TypeError && 'code' in error)) {
      process.stderr.write(`tollgate admin-key: ${error.message}\n\n${USAGE}`)
      process.exitCode = 2
    } else if (error instanceof ConfigError || error instanceof InstallationError) {
      process.stderr.write(`tollgate: ${error.message}\n`)
      process.exitCode = error instanceof ConfigError ? 2 : 1
    } else throw error
  }
}

class UsageError extends Error {}

async function withStore(work: (tools: Tools) => Promise<void>): Promise<void> {
  const config = readConfig(process.env)
  const { store, digestKey } = await openStore(config, (error) => {
    throw error
  })
  try {
    await work({ config, store, digestKey })
  } finally {
    await store.close()
  }
}

async function create(args: string[], { config, store, digestKey }: Tools): Promise<void> {
  const { values } = parseArgs({ args, options: { name: { type: 'string', default: 'command line' } } })
  const secret = mintKey(config.prefix, 'admin')
  const key = await store.createAdminKey({
    id: `adm_${createUlidSource(systemClock)()}`,
    accountId: 'default',
    name: values.name,
    digest: digestKey(secret.reveal()),
    ...shownParts(secret, config.prefix),
    createdAtMs: systemClock.nowMs(),
    bootstrap: false,
  })
  process.stderr.write(`Created ${key.id}. The key is shown this once:\n`)
  process.stdout.write(`${secret.reveal()}\n`)
}

async function list(args: string[], { store }: Tools): Promise<void> {
  parseArgs({ args, options: {} })
  for (const key of await store.listAdminKeys()) {
    const status = key.revokedAtMs === null ? 'usable ' : 'revoked'
    const shown = `${key.prefix}…${key.last4}`.padEnd(21)
    const created = new Date(key.createdAtMs).toISOString()
    process.stdout.write(`${key.id}  ${status}  ${shown}  ${created}  ${key.name}\n`)
  }
}

async function revoke(args: string[], { store }: Tools): Promise<void> {
  const { positionals } = parseArgs({ args, options: {}, allowPositionals: true })
  const [id, ...more] = positionals
  if (id === undefined || more.length > 0)
    throw new UsageError('name one id, as `tollgate admin-key list` shows it')
  const usable = (await store.listAdminKeys()).filter((key) => key.revokedAtMs === null)
  if (usable.length === 1 && usable[0]?.id === id) {
    process.stderr.write(`tollgate: ${id} is the last admin key. Create another one first.\n`)
    process.exitCode = 1
    return
  }
  const key = await store.revokeAdminKey(id, systemClock.nowMs())
  if (key === null) {
    process.stderr.write(`tollgate: there is no admin key ${id}.\n`)
    process.exitCode = 1
    return
  }
  process.stdout.write(`Revoked ${key.id} (${key.name}).\n`)
  if (key.bootstrap) {
    process.stderr.write(
      'It came from TOLLGATE_ADMIN_KEY: change that too, or the next start installs it again.\n',
    )
  }
}
