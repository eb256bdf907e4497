import type { Command } from 'commander'
import { newAdminKeyFields } from '../api/admin-key.ts'
import { explainIssue } from '../api/fields.ts'
import { accountObject, adminKeyObject } from '../api/objects.ts'
import { readConfig } from '../config/read-config.ts'
import { COMMAND_LINE } from '../kernel/actor.ts'
import { systemClock } from '../kernel/clock.ts'
import { createUlidSource } from '../kernel/ids.ts'
import { ADMIN_ROLES } from '../kernel/vocabulary.ts'
import { mintKey, shownParts } from '../keys/key-format.ts'
import type { Store } from '../store/store.ts'
import { examples, Failure, UsageError } from './command.ts'
import { onlyAccount } from './find-by-name.ts'
import { openDatabase } from './open-database.ts'
import { renderRecords } from './records.ts'
import { outputStyle, print, shownText } from './terminal.ts'

/** These commands need no admin key: whoever can write to the database is an operator anyway. */
export function register(group: Command): void {
  group
    .command('create')
    .description('create an admin key and print it once')
    .option('--name <name>', 'name of the key', 'command line')
    .option('--role <role>', `one of ${ADMIN_ROLES.join(', ')}`, 'operator')
    .option('--account <name>', 'account of an admin or viewer: its id or name')
    .addHelpText(
      'after',
      examples(
        'tollgate admin-key create --name "ops"',
        'tollgate admin-key create --name "finance" --role viewer --account "Team Search"',
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
    .description('revoke an admin key immediately and for good; the last operator key cannot be revoked')
    .addHelpText('after', examples('tollgate admin-key revoke adm_01JCN1ZV5M3T9Q8W7E6R5T4Y3X'))
    .action(revokeAdminKey)
}

async function withStore(
  work: (opened: Awaited<ReturnType<typeof openDatabase>>) => Promise<void>,
): Promise<void> {
  const opened = await openDatabase(readConfig(process.env))
  try {
    await work(opened)
  } finally {
    await opened.store.close()
  }
}

type CreateOptions = Readonly<{ name: string; role: string; account?: string }>

async function createAdminKey({ account, ...options }: CreateOptions): Promise<void> {
  const { data: fields, error } = newAdminKeyFields.safeParse(options)
  if (fields === undefined) throw new UsageError(explainIssue(error.issues[0], options.role))
  const { name, role } = fields
  if ((role === 'operator') !== (account === undefined))
    throw new UsageError(
      '--account is required for the roles admin and viewer, and not allowed for operator.',
    )
  await withStore(async ({ store, digestKey }) => {
    const isId = account === undefined || (await store.hasAccount(account))
    const accountId = isId ? (account ?? null) : await findAccountId(account, store)
    const { prefix } = readConfig(process.env)
    const secret = mintKey(prefix, 'admin')
    const key = {
      id: `adm_${createUlidSource(systemClock)()}`,
      name,
      role,
      accountId,
      digest: digestKey(secret.reveal()),
      ...shownParts(secret, prefix),
      createdAtMs: systemClock.nowMs(),
      bootstrap: false,
    }
    const { id } = await store.createAdminKey(key, COMMAND_LINE)
    process.stderr.write(`Created ${id} (${shownText(name)}). The key is shown only once:\n`)
    await print(`${secret.reveal()}\n`)
  })
}

async function findAccountId(name: string, store: Store): Promise<string> {
  const atMs = systemClock.nowMs()
  const query = { status: null, search: name, after: null, limit: 1_000, atMs }
  const { rows, more } = await store.listAccounts(query)
  return onlyAccount(name, { data: rows.map((account) => accountObject(account, atMs)), has_more: more })
}

const COLUMNS = {
  id: 'id',
  status: 'status',
  role: 'role',
  account: 'account_id',
  prefix: 'prefix',
  last4: 'last4',
  created: 'created_at',
  name: 'name',
}

const ALL = { accountId: null, operators: true } as const

async function listAdminKeys(options: { readonly color: boolean }): Promise<void> {
  await withStore(async ({ store }) => {
    const { rows } = await store.listAdminKeys({ scope: ALL, after: null, limit: 10_000 })
    await print(renderRecords(COLUMNS, rows.map(adminKeyObject), outputStyle(options)))
  })
}

const NOT_REVOKED = {
  none: 'There is no such admin key. `tollgate admin-key list` lists them.',
  last_operator: 'This is the last operator key. Create another one first: `tollgate admin-key create`.',
  configured:
    'This is the key of TOLLGATE_ADMIN_KEY. Change or remove the variable and restart to revoke it.',
}

async function revokeAdminKey(id: string): Promise<void> {
  await withStore(async ({ store }) => {
    const result = await store.revokeAdminKey(ALL, id, COMMAND_LINE, systemClock.nowMs())
    if (result.kind !== 'revoked') throw new Failure(NOT_REVOKED[result.kind])
    await print(`Revoked ${result.key.id} (${shownText(result.key.name)}).\n`)
  })
}
