import type { Command } from 'commander'
import { type Config, readConfig } from '../config.ts'
import { systemClock } from '../kernel/clock.ts'
import { createUlidSource } from '../kernel/ids.ts'
import { ADMIN_ROLES, COMMAND_LINE } from '../kernel/vocabulary.ts'
import { mintKey, shownParts } from '../keys/key-format.ts'
import { examples, Failure, UsageError } from './command.ts'
import { openDatabase } from './open-database.ts'
import { left, outputStyle, print, renderTable, shownInstant, shownText, type TableCell } from './terminal.ts'

/** Manages admin keys on the host: whoever can write to the data directory or database is the operator. */
export function register(group: Command): void {
  group
    .command('create')
    .description('create an admin key and print it, once')
    .option('--name <name>', 'its name', 'command line')
    .option('--role <role>', `one of ${ADMIN_ROLES.join(', ')}`, 'operator')
    .option('--account <id>', 'the account of an admin or viewer')
    .addHelpText(
      'after',
      examples(
        'tollgate admin-key create --name "ops"',
        'tollgate admin-key create --name "finance" --role viewer --account acct_01JCN1ZV5M3T9Q8W7E6R5T4Y3X',
      ),
    )
    .action(createAdminKey)
  group
    .command('list')
    .description('list the admin keys, without their secrets')
    .option('--no-color', 'no colour on a terminal')
    .action(listAdminKeys)
  group
    .command('revoke <id>')
    .description('revoke an admin key, at once and for good; the last operator key cannot be revoked')
    .addHelpText('after', examples('tollgate admin-key revoke adm_01JCN1ZV5M3T9Q8W7E6R5T4Y3X'))
    .action(revokeAdminKey)
}

type Opened = Pick<Awaited<ReturnType<typeof openDatabase>>, 'store' | 'digestKey'>

async function withStore(work: (opened: Opened, config: Config) => Promise<void>): Promise<void> {
  const config = readConfig(process.env)
  const { store, digestKey } = await openDatabase(config)
  try {
    await work({ store, digestKey }, config)
  } finally {
    await store.close()
  }
}

const NAME_CHARS_MAX = 120

interface CreateOptions {
  readonly name: string
  readonly role: string
  readonly account?: string
}

async function createAdminKey({ name, role: asked, account }: CreateOptions): Promise<void> {
  const role = ADMIN_ROLES.find((each) => each === asked)
  if (role === undefined) throw new UsageError(`--role must be one of ${ADMIN_ROLES.join(', ')}.`)
  if ((role === 'operator') !== (account === undefined))
    throw new UsageError(
      '--account is required for the roles admin and viewer, and not allowed for operator.',
    )
  if (name.trim() === '' || name.length > NAME_CHARS_MAX || /\p{Cc}/u.test(name))
    throw new UsageError(`--name must have 1 to ${NAME_CHARS_MAX} characters, not only spaces.`)
  await withStore(async ({ store, digestKey }, config) => {
    const secret = mintKey(config.prefix, 'admin')
    if (account !== undefined && !(await store.hasAccount(account)))
      throw new Failure(`There is no account with the id ${shownText(account)}.`)
    const key = await store.createAdminKey(
      {
        id: `adm_${createUlidSource(systemClock)()}`,
        role,
        accountId: account ?? null,
        name,
        digest: digestKey(secret.reveal()),
        ...shownParts(secret, config.prefix),
        createdAtMs: systemClock.nowMs(),
        bootstrap: false,
      },
      COMMAND_LINE,
    )
    process.stderr.write(`Created ${key.id} (${shownText(key.name)}). The key is shown only now:\n`)
    await print(`${secret.reveal()}\n`)
  })
}

const COLUMNS = ['id', 'status', 'role', 'account', 'key', 'created (UTC)', 'name'].map(left)

const ALL = { accountId: null, operators: true } as const

async function listAdminKeys(options: { readonly color: boolean }): Promise<void> {
  await withStore(async ({ store }) => {
    const rows = (await store.listAdminKeys({ scope: ALL, after: null, limit: 10_000 })).rows.map(
      (key): TableCell[] => [
        key.id,
        key.revokedAtMs === null ? { text: 'usable', style: 'green' } : { text: 'revoked', style: 'red' },
        key.role,
        key.accountId ?? 'all',
        shownText(`${key.prefix}…${key.last4}`),
        shownInstant(new Date(key.createdAtMs).toISOString()),
        shownText(key.name),
      ],
    )
    await print(renderTable(COLUMNS, rows, outputStyle(options)))
  })
}

async function revokeAdminKey(id: string): Promise<void> {
  await withStore(async ({ store }) => {
    const result = await store.revokeAdminKey(ALL, id, COMMAND_LINE, systemClock.nowMs())
    switch (result.kind) {
      case 'none':
        throw new Failure(`There is no admin key ${shownText(id)}. \`tollgate admin-key list\` lists them.`)
      case 'last_operator':
        throw new Failure(
          `${id} is the last operator key. Create another one first: \`tollgate admin-key create\`.`,
        )
      case 'configured':
        throw new Failure(
          `${id} is the key of TOLLGATE_ADMIN_KEY. Change or remove the variable and restart to revoke it.`,
        )
      case 'revoked':
        await print(`Revoked ${result.key.id} (${shownText(result.key.name)}).\n`)
    }
  })
}
