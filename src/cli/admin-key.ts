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
import { type ApiCommand, registerAll, runCommand } from './api-command.ts'
import type { ApiAnswer, CommandOptions, ObjectOf } from './client.ts'
import { Failure, UsageError } from './command.ts'
import { onlyAccount } from './find-by-name.ts'
import { openDatabase } from './open-database.ts'
import { renderRecords } from './records.ts'
import { outputStyle, print, printResult, shownText } from './terminal.ts'

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

const PATH = '/gateway/v1/admin-keys'

const CREATE = {
  options: [
    ['--name <name>', 'name', 'name of the key (command line)'],
    ['--role <role>', 'role', `one of ${ADMIN_ROLES.join(', ')} (operator)`],
  ] as const,
  defaults: { name: 'command line', role: 'operator' },
  examples: [
    'tollgate admin-key create --name "ops"',
    'tollgate admin-key create --name "finance" --role viewer --account "Team Search"',
    'tollgate admin-key create --name "ci" --url https://gateway.example --admin-key-file ~/.tollgate-key',
  ],
  async show({ value }: ApiAnswer<ObjectOf<'admin_key'>>) {
    const { key = '', id, name } = value
    await printNewKey(id, name, key)
  },
}

const LIST = { listing: { noun: 'admin keys', columns: COLUMNS } }

const REVOKE = {
  help: '\nThe last operator key cannot be revoked.',
  examples: ['tollgate admin-key revoke adm_01JCN1ZV5M3T9Q8W7E6R5T4Y3X'],
  async show({ value }: ApiAnswer<ObjectOf<'admin_key'>>) {
    const { id, name } = value
    await print(`Revoked ${id} (${shownText(name)}).\n`)
  },
}

const ROWS: readonly ApiCommand<'admin_key'>[] = [
  ['create', 'create an admin key and print it once', 'POST', PATH, CREATE],
  ['list', 'list the admin keys, without their secrets', 'GET', PATH, LIST],
  ['revoke <id>', 'revoke an admin key immediately and for good', 'POST', `${PATH}/<id>/revoke`, REVOKE],
]

/** Without --url, these commands need no admin key: whoever can write to the database is an operator anyway. */
export function register(group: Command): void {
  const commands = registerAll(group, 'admin_key', ROWS)
  for (const [nth, work] of [createAdminKey, listAdminKeys, revokeAdminKey].entries()) {
    const [row, command] = [ROWS[nth], commands[nth]]
    if (row === undefined || command === undefined) continue
    command.action(async () => {
      const options = command.opts<CommandOptions>()
      const [id = ''] = command.args
      if (options.url === undefined && options.adminKeyFile === undefined) await work(options, id)
      else await runCommand(row, 'admin_key', new Map(id === '' ? [] : [['id', id]]), options)
    })
  }
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

async function createAdminKey({ account, ...options }: CommandOptions): Promise<void> {
  const { name: givenName, role: givenRole } = { ...CREATE.defaults, ...options }
  const { data: fields, error } = newAdminKeyFields.safeParse({ name: givenName, role: givenRole })
  if (fields === undefined) throw new UsageError(explainIssue(error.issues[0], givenRole))
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
    const created = await store.createAdminKey(key, COMMAND_LINE)
    const shown = { ...adminKeyObject(created), key: secret.reveal() }
    if (options.json) await print(`${JSON.stringify(shown)}\n`)
    else await printNewKey(created.id, name, shown.key)
  })
}

async function printNewKey(id: string, name: string, secret: string): Promise<void> {
  process.stderr.write(`Created ${id} (${shownText(name)}). The key is shown only once:\n`)
  await print(`${secret}\n`)
}

async function findAccountId(name: string, store: Store): Promise<string> {
  const atMs = systemClock.nowMs()
  const query = { status: null, search: name, after: null, limit: 1_000, atMs }
  const { rows, more } = await store.listAccounts(query)
  return onlyAccount(name, { data: rows.map((account) => accountObject(account, atMs)), has_more: more })
}

const ALL = { accountId: null, operators: true } as const

async function listAdminKeys(options: CommandOptions): Promise<void> {
  await withStore(async ({ store }) => {
    const { rows } = await store.listAdminKeys({ scope: ALL, after: null, limit: 10_000 })
    const data = rows.map(adminKeyObject)
    if (options.json)
      await print(`${JSON.stringify({ object: 'list', data, has_more: false, next: null })}\n`)
    else await print(renderRecords(COLUMNS, data, outputStyle(options)))
  })
}

const NOT_REVOKED = {
  none: 'There is no such admin key. `tollgate admin-key list` lists them.',
  last_operator: 'This is the last operator key. Create another one first: `tollgate admin-key create`.',
  configured:
    'This is the key of TOLLGATE_ADMIN_KEY. Change or remove the variable and restart to revoke it.',
}

async function revokeAdminKey(options: CommandOptions, id: string): Promise<void> {
  await withStore(async ({ store }) => {
    const result = await store.revokeAdminKey(ALL, id, COMMAND_LINE, systemClock.nowMs())
    if (result.kind !== 'revoked') throw new Failure(NOT_REVOKED[result.kind])
    const text = `Revoked ${result.key.id} (${shownText(result.key.name)}).\n`
    await printResult(options, adminKeyObject(result.key), text)
  })
}
