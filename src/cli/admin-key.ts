import type { Command } from 'commander'
import { type Config, readConfig } from '../config.ts'
import { systemClock } from '../kernel/clock.ts'
import { createUlidSource } from '../kernel/ids.ts'
import { mintKey, shownParts } from '../keys/key-format.ts'
import { openBooks } from './books.ts'
import { examples, Failure, UsageError } from './command.ts'
import { type Cell, left, outputStyle, print, renderTable, shownInstant, shownText } from './terminal.ts'

/** Manages admin keys on the host: a user that can write to the data directory or the database is the operator. */
export function register(group: Command): void {
  group
    .command('create')
    .description('create an admin key and print it, once')
    .option('--name <name>', 'its name', 'command line')
    .addHelpText('after', examples('ADMIN_KEY=$(tollgate admin-key create --name "second operator")'))
    .action(createAdminKey)
  group
    .command('list')
    .description('list the admin keys, without their secrets')
    .option('--no-color', 'no colour on a terminal')
    .action(listAdminKeys)
  group
    .command('revoke <id>')
    .description('revoke an admin key, at once and for good; the last one cannot be revoked')
    .addHelpText('after', examples('tollgate admin-key revoke adm_01JCN1ZV5M3T9Q8W7E6R5T4Y3X'))
    .action(revokeAdminKey)
}

type Opened = Pick<Awaited<ReturnType<typeof openBooks>>, 'store' | 'digestKey'>

async function withStore(work: (opened: Opened, config: Config) => Promise<void>): Promise<void> {
  const config = readConfig(process.env)
  const { store, digestKey } = await openBooks(config)
  try {
    await work({ store, digestKey }, config)
  } finally {
    await store.close()
  }
}

const NAME_CHARS_MAX = 120

async function createAdminKey({ name }: { readonly name: string }): Promise<void> {
  if (name.trim() === '' || name.length > NAME_CHARS_MAX || /\p{Cc}/u.test(name))
    throw new UsageError(`--name must have 1 to ${NAME_CHARS_MAX} characters, not only blanks.`)
  await withStore(async ({ store, digestKey }, config) => {
    const secret = mintKey(config.prefix, 'admin')
    const key = await store.createAdminKey({
      id: `adm_${createUlidSource(systemClock)()}`,
      role: 'operator',
      accountId: null,
      name,
      digest: digestKey(secret.reveal()),
      ...shownParts(secret, config.prefix),
      createdAtMs: systemClock.nowMs(),
      bootstrap: false,
    })
    process.stderr.write(`Created ${key.id} (${shownText(key.name)}). The key is shown only now:\n`)
    await print(`${secret.reveal()}\n`)
  })
}

const COLUMNS = ['id', 'status', 'key', 'created (UTC)', 'name'].map(left)

async function listAdminKeys(options: { readonly color: boolean }): Promise<void> {
  await withStore(async ({ store }) => {
    const rows = (await store.listAdminKeys()).map((key): Cell[] => [
      key.id,
      key.revokedAtMs === null ? { text: 'usable', style: 'green' } : { text: 'revoked', style: 'red' },
      shownText(`${key.prefix}…${key.last4}`),
      shownInstant(new Date(key.createdAtMs).toISOString()),
      shownText(key.name),
    ])
    await print(renderTable(COLUMNS, rows, outputStyle(options)))
  })
}

async function revokeAdminKey(id: string): Promise<void> {
  await withStore(async ({ store }) => {
    const usable = (await store.listAdminKeys()).filter((key) => key.revokedAtMs === null)
    if (usable.length === 1 && usable[0]?.id === id)
      throw new Failure(
        `${id} is the last admin key. Create another one first: \`tollgate admin-key create\`.`,
      )
    const key = await store.revokeAdminKey(id, systemClock.nowMs())
    if (key === null)
      throw new Failure(`There is no admin key ${shownText(id)}. \`tollgate admin-key list\` lists them.`)
    await print(`Revoked ${key.id} (${shownText(key.name)}).\n`)
    if (key.bootstrap)
      process.stderr.write(
        'It came from TOLLGATE_ADMIN_KEY: change the variable, or the next start installs it again.\n',
      )
  })
}
