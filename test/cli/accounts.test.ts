import assert from 'node:assert/strict'
import { after, before, test } from '../support/suite.ts'
import { type CommandGateway, startCommandGateway } from './command-gateway.ts'

let commands: CommandGateway
before(async () => {
  commands = await startCommandGateway()
})
after(() => commands.close())

const UNKNOWN = 'acct_01JCN1ZV5M3T9Q8W7E6R5T4Y3X'

test('accounts are created once, shown, changed, suspended and listed', async () => {
  const { done } = commands
  const once = ['create', 'Acme', '--monthly-budget', '50', '--discount', '0.1', '--idempotency-key', 'acme']
  const shown = await done('accounts', ...once)
  const [, id = ''] = /^id +(acct_\w{26})\n/.exec(shown) ?? []
  /** The arguments, with the id in the place of ID, and what is printed. */
  const table: readonly (readonly [readonly string[], RegExp])[] = [
    [once, new RegExp(`^id +${id}\\n`)],
    [
      ['show', 'ID'],
      /\nname +Acme\nstatus +active\nmonthly cap +50 USD\nthis month +0 USD spent, 0 USD reserved\n/,
    ],
    [['show', 'ID'], /\nbalance +0 USD\ndiscount +0\.1\ncreated +\d{4}-\d\d-\d\d [\d:]{8} UTC\n$/],
    [['update', 'ID', '--name', 'Acme Ltd', '--discount', 'none'], /\nname +Acme Ltd\n.*\n.*50 USD\n/],
    [
      ['update', 'ID', '--monthly-budget', 'none'],
      /\nmonthly cap +none\n[\s\S]*discount +that of the installation\n/,
    ],
    [['update', 'ID', '--enforce-credit', 'yes', '--force'], /\nbalance +0 USD, enforced\n/],
    [['suspend', 'ID'], /\nstatus +suspended\n/],
    [
      ['list', '--status', 'suspended'],
      new RegExp(`^id .*\\n${id} +suspended +0\\.00 +- +0\\.00 {2}Acme Ltd\\n$`),
    ],
    [['resume', 'ID', '--json'], /^\{"id":"acct_\w+","object":"account","name":"Acme Ltd","status":"active"/],
    [
      ['list'],
      /^id +status +spent \(USD\) {2}monthly cap {2}balance {2}name\nacct_.*\ndefault +active .* default\n$/,
    ],
    [['list', '--search', 'acme', '--json'], /^\{"object":"list","data":\[\{"id":"acct_/],
  ]
  for (const [args, expected] of table)
    assert.match(
      await done('accounts', ...args.map((arg) => (arg === 'ID' ? id : arg))),
      expected,
      args.join(' '),
    )
  const { data } = (await commands.gateway.manage('GET', '/gateway/v1/accounts')) as { data: unknown[] }
  assert.equal(data.length, 2)
})

test('mistakes are explained in the words of the command line', async () => {
  const table: readonly (readonly [readonly string[], number, RegExp])[] = [
    [['create', 'x', '--enforce-credit', 'maybe'], 2, /--enforce-credit must be yes or no/],
    [['create', 'x', '--discount', '2'], 2, /discount must be a number from 0 to 1/],
    [['create'], 2, /missing required argument/],
    [['update', 'default', '--enforce-credit', 'yes'], 1, /Add credit first, or add --force\.\n$/],
    [['show', UNKNOWN], 1, /There is no account with this id/],
    [
      ['suspend', UNKNOWN],
      1,
      /There is no account with this id\. List accounts with `tollgate accounts list`\./,
    ],
    [['list', '--status', 'gone'], 2, /status must be one of active, suspended/],
  ]
  for (const [args, code, message] of table) {
    const run = await commands.run('accounts', ...args)
    assert.deepEqual([run.code, run.stdout], [code, ''], args.join(' '))
    assert.match(run.stderr, message)
  }
})

test('--account acts in another account, and "*" in all of them', async () => {
  const { done, run } = commands
  const created = JSON.parse(await done('accounts', 'create', 'Second', '--json')) as { id: string }
  await done('keys', 'create', '--name', 'of the second', '--account', created.id)
  await done('credits', 'add', '3', '--reason', 'paid', '--account', created.id)
  assert.match(await done('keys', 'list', '--account', created.id), /of the second\n$/)
  assert.match(await done('balance', '--account', created.id), /^balance +3 USD\n/)
  assert.doesNotMatch(await done('keys', 'list'), /of the second/)
  assert.match(await done('keys', 'list', '--account', '*'), /of the second/)
  assert.equal((await run('keys', 'list', '--account', UNKNOWN)).code, 1)
})
