import { parseArgs } from 'node:util'
import { type Config, readConfig } from '../config.ts'
import { systemClock } from '../kernel/clock.ts'
import { createUlidSource } from '../kernel/ids.ts'
import type { DigestKey } from '../keys/key-digest.ts'
import { mintKey, shownParts } from '../keys/key-format.ts'
import type { KeyStore } from '../keys/key-store.ts'
import { textField } from '../management/fields.ts'
import { EXIT_HELP } from './connection.ts'
import { lookOf } from './look.ts'
import { openBooks } from './open-books.ts'
import { print } from './print.ts'
import { type Command, Failure, runGroup, UsageError } from './run-command.ts'
import { shownInstant, shownText } from './shown-text.ts'
import { type Cell, type Column, renderTable } from './table.ts'

const WHERE = `Works on the data directory (TOLLGATE_DATA_DIR), or on the database of TOLLGATE_DATABASE_URL, beside running gateways
or without one.

${EXIT_HELP}`

const HELP = `Usage
  tollgate admin-key create [--name <label>]   create an admin key; it is printed once
  tollgate admin-key list                      list the admin keys, without their secrets
  tollgate admin-key revoke <id>               revoke one; it stops working at once

${WHERE}`

interface Tools {
  readonly config: Config
  readonly store: KeyStore
  readonly digestKey: DigestKey
}

/** Manages admin keys locally on the host: whoever can read the data directory is the operator. */
export async function adminKey(args: readonly string[]): Promise<void> {
  await runGroup('admin-key', HELP, [create, list, revoke], args)
}

async function withStore(work: (tools: Tools) => Promise<void>): Promise<void> {
  const config = readConfig(process.env)
  const { store, digestKey } = await openBooks(config)
  try {
    await work({ config, store, digestKey })
  } finally {
    await store.close()
  }
}

const create: Command = {
  name: 'admin-key create',
  help: `Usage
  tollgate admin-key create [--name <label>]

Creates an admin key. The key is printed to standard output, once, and everything else to standard error.
  --name <label>   what people call it; "command line" unless given

Example
  ADMIN_KEY=$(tollgate admin-key create --name "second operator")

${WHERE}`,
  async run(args) {
    const { values } = parseArgs({ args, options: { name: { type: 'string', default: 'command line' } } })
    const [issue] = textField('--name', 120).safeParse(values.name).error?.issues ?? []
    if (issue !== undefined) throw new UsageError(issue.message)
    await withStore(async ({ config, store, digestKey }) => {
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
      process.stderr.write(`Created ${key.id} (${shownText(key.name)}). The key is shown this once:\n`)
      await print(`${secret.reveal()}\n`)
    })
  },
}

const COLUMNS: readonly Column[] = [
  { title: 'id', align: 'left' },
  { title: 'status', align: 'left' },
  { title: 'key', align: 'left' },
  { title: 'created (UTC)', align: 'left' },
  { title: 'name', align: 'left' },
]

const list: Command = {
  name: 'admin-key list',
  help: `Usage
  tollgate admin-key list [--no-color]

Lists the admin keys, without their secrets.
  --no-color   no colour on a terminal either; the variable NO_COLOR says the same

Example
  tollgate admin-key list

${WHERE}`,
  async run(args) {
    const { values } = parseArgs({ args, options: { 'no-color': { type: 'boolean', default: false } } })
    await withStore(async ({ store }) => {
      const rows = (await store.listAdminKeys()).map((key): Cell[] => [
        key.id,
        key.revokedAtMs === null ? { text: 'usable', style: 'green' } : { text: 'revoked', style: 'red' },
        shownText(`${key.prefix}…${key.last4}`),
        shownInstant(new Date(key.createdAtMs).toISOString()),
        shownText(key.name),
      ])
      await print(renderTable(COLUMNS, rows, lookOf(process.stdout, process.env, values['no-color'])))
    })
  },
}

const revoke: Command = {
  name: 'admin-key revoke',
  help: `Usage
  tollgate admin-key revoke <id>

Ends an admin key, at once and for good. The last one cannot be revoked.

Example
  tollgate admin-key revoke adm_01JCN1ZV5M3T9Q8W7E6R5T4Y3X

${WHERE}`,
  async run(args) {
    const { positionals } = parseArgs({ args, options: {}, allowPositionals: true })
    const [id, ...more] = positionals
    if (id === undefined || more.length > 0)
      throw new UsageError('name one <id>, as `tollgate admin-key list` shows it')
    await withStore(async ({ store }) => {
      const usable = (await store.listAdminKeys()).filter((key) => key.revokedAtMs === null)
      if (usable.length === 1 && usable[0]?.id === id)
        throw new Failure(`${id} is the last admin key. Create another one first.`)
      const key = await store.revokeAdminKey(id, systemClock.nowMs())
      if (key === null)
        throw new Failure(`there is no admin key ${shownText(id)}. See \`tollgate admin-key list\`.`)
      await print(`Revoked ${key.id} (${shownText(key.name)}).\n`)
      if (key.bootstrap) {
        process.stderr.write(
          'It came from TOLLGATE_ADMIN_KEY: change that too, or the next start installs it again.\n',
        )
      }
    })
  },
}
