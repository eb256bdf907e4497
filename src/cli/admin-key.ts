import { type Config, readConfig } from '../config.ts'
import { systemClock } from '../kernel/clock.ts'
import { createUlidSource } from '../kernel/ids.ts'
import { mintKey, shownParts } from '../keys/key-format.ts'
import { openBooks } from './books.ts'
import { defineCommand, defineGroup, EXIT_HELP, Failure, NO_COLOR, option, UsageError } from './command.ts'
import { type Cell, left, outputStyle, print, renderTable, shownInstant, shownText } from './terminal.ts'

const WHERE = `Works on the data directory (TOLLGATE_DATA_DIR), or on the database of TOLLGATE_DATABASE_URL, beside running gateways
or without one.`

type Books = Pick<Awaited<ReturnType<typeof openBooks>>, 'store' | 'digestKey'>

async function withBooks(work: (books: Books, config: Config) => Promise<void>): Promise<void> {
  const config = readConfig(process.env)
  const { store, digestKey } = await openBooks(config)
  try {
    await work({ store, digestKey }, config)
  } finally {
    await store.close()
  }
}

const create = defineCommand({
  name: 'admin-key create',
  summary: ['[--name <label>]', 'create an admin key; it is printed once'],
  usage: 'tollgate admin-key create [--name <label>]',
  about:
    'Creates an admin key. The key is printed to standard output, once, and everything else to standard error.',
  options: { name: option('<label>', 'what people call it; "command line" unless given') },
  examples: ['ADMIN_KEY=$(tollgate admin-key create --name "second operator")'],
  sections: [`${WHERE}\n`],
  async run({ name = 'command line' }) {
    const { textField } = await import('../management/text-field.ts')
    const [issue] = textField('--name', 120).safeParse(name).error?.issues ?? []
    if (issue !== undefined) throw new UsageError(issue.message)
    await withBooks(async ({ store, digestKey }, config) => {
      const secret = mintKey(config.prefix, 'admin')
      const key = await store.createAdminKey({
        id: `adm_${createUlidSource(systemClock)()}`,
        accountId: 'default',
        name,
        digest: digestKey(secret.reveal()),
        ...shownParts(secret, config.prefix),
        createdAtMs: systemClock.nowMs(),
        bootstrap: false,
      })
      process.stderr.write(`Created ${key.id} (${shownText(key.name)}). The key is shown this once:\n`)
      await print(`${secret.reveal()}\n`)
    })
  },
})

const COLUMNS = ['id', 'status', 'key', 'created (UTC)', 'name'].map(left)

const list = defineCommand({
  name: 'admin-key list',
  summary: ['', 'list the admin keys, without their secrets'],
  usage: 'tollgate admin-key list [--no-color]',
  about: 'Lists the admin keys, without their secrets.',
  options: { 'no-color': NO_COLOR },
  examples: ['tollgate admin-key list'],
  sections: [`${WHERE}\n`],
  async run(values) {
    await withBooks(async ({ store }) => {
      const rows = (await store.listAdminKeys()).map((key): Cell[] => [
        key.id,
        key.revokedAtMs === null ? { text: 'usable', style: 'green' } : { text: 'revoked', style: 'red' },
        shownText(`${key.prefix}…${key.last4}`),
        shownInstant(new Date(key.createdAtMs).toISOString()),
        shownText(key.name),
      ])
      await print(renderTable(COLUMNS, rows, outputStyle(values)))
    })
  },
})

const revoke = defineCommand({
  name: 'admin-key revoke',
  summary: ['<id>', 'revoke one; it stops working at once'],
  usage: 'tollgate admin-key revoke <id>',
  about: 'Ends an admin key, at once and for good. The last one cannot be revoked.',
  options: {},
  examples: ['tollgate admin-key revoke adm_01JCN1ZV5M3T9Q8W7E6R5T4Y3X'],
  sections: [`${WHERE}\n`],
  takesArguments: true,
  async run(_, [id, ...more]) {
    if (id === undefined || more.length > 0)
      throw new UsageError('name one <id>, as `tollgate admin-key list` shows it')
    await withBooks(async ({ store }) => {
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
})

/** Manages admin keys locally on the host: a user that can read the data directory is the operator. */
export const command = defineGroup('admin-key', `${WHERE}\n\n${EXIT_HELP}`, [create, list, revoke])
