import assert from 'node:assert/strict'
import { closeAfter, test } from '../support/suite.ts'
import { startCommandGateway } from './command-gateway.ts'

const commands = await startCommandGateway()
closeAfter(commands)

const UNKNOWN = 'acct_01JCN1ZV5M3T9Q8W7E6R5T4Y3X'

test('accounts are created once, shown, updated, suspended and listed', async () => {
  const { done } = commands
  const once = ['create', 'Acme', '--monthly-budget', '50', '--discount', '0.1', '--idempotency-key', 'acme']
  const shown = await done('accounts', ...once)
  const [, id = ''] = /^id +(acct_\w{26})\n/.exec(shown) ?? []
  /** Arguments, with ID in place of the id, and the output. */
  const table: readonly (readonly [readonly string[], RegExp])[] = [
    [once, new RegExp(`^id +${id}\\n`)],
    [
      ['show', 'ID'],
      /\nname +Acme\nstatus +active\nmonthly_budget_usd +50\nmonth_spend_usd +0\nmonth_held_usd +0\n/,
    ],
    [['show', 'ID'], /\nbalance_usd +0\ndiscount +0\.1\ncreated_at +\d{4}-\d\d-\d\d [\d:]{8} UTC\n$/],
    [
      ['update', 'ID', '--name', 'Acme Ltd', '--discount', 'none'],
      /\nname +Acme Ltd\n.*\nmonthly_budget_usd +50\n(?!.*discount)/s,
    ],
    [['update', 'ID', '--monthly-budget', 'none'], /^(?!.*monthly_budget_usd)/s],
    [['update', 'ID', '--enforce-credit', 'yes', '--force'], /\ncredit_enforced +yes\n/],
    [['suspend', 'ID'], /\nstatus +suspended\n/],
    [
      ['list', '--status', 'suspended'],
      new RegExp(`^id .*\\n${id} +suspended +0\\.00 +0\\.00 {2}Acme Ltd\\n$`),
    ],
    [['resume', 'ID', '--json'], /^\{"id":"acct_\w+","object":"account","name":"Acme Ltd","status":"active"/],
    [['list'], /^id +status +spent \(USD\) {2}balance {2}name\nacct_.*\ndefault +active .* default\n$/],
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

test('errors use the terms of the command line', async () => {
  const table: readonly (readonly [readonly string[], number, RegExp])[] = [
    [['create', 'x', '--enforce-credit', 'maybe'], 2, /--enforce-credit must be yes or no/],
    [['create', 'x', '--discount', '2'], 2, /--discount: discount must be a number from 0 to 1/],
    [['create'], 2, /Missing required argument/],
    [['show', UNKNOWN, '--account', 'default'], 2, /Unknown option '--account'/],
    [['update', 'default', '--enforce-credit', 'yes'], 1, /Add credit first, or set force to true/],
    [['show', UNKNOWN], 1, /There is no account with this id/],
    [['suspend', UNKNOWN], 1, /There is no account with this id/],
    [['list', '--status', 'gone'], 2, /--status: status must be one of active, suspended/],
  ]
  for (const [args, code, message] of table) {
    const run = await commands.run('accounts', ...args)
    assert.deepEqual([run.code, run.stdout], [code, ''], args.join(' '))
    assert.match(run.stderr, message)
  }
})

test("an operator's commands look in all accounts, and --account narrows", async () => {
  const { done, run } = commands
  const created = JSON.parse(await done('accounts', 'create', 'Second', '--json')) as { id: string }
  const secret = await done('keys', 'create', '--name', 'of the second', '--account', created.id)
  await done('credits', 'add', '3', '--reason', 'paid', '--account', created.id)
  assert.match(await done('keys', 'list', '--account', created.id), /of the second\n$/)
  assert.match(await done('balance', '--account', created.id), /^balance_usd +3\n/)
  assert.doesNotMatch(await done('keys', 'list', '--account', 'default'), /of the second/)
  assert.match(
    await done('keys', 'list'),
    new RegExp(`^id .* account\n(?:.*\n)*.*of the second +${created.id}\n`),
  )
  // The runbook of a leaked key: find it by its prefix, whatever account it belongs to; export and credit its calls.
  const prefix = secret.slice(0, 16)
  assert.match(await done('keys', 'show', prefix), /\nname +of the second\n/)
  const call = await commands.call(secret.trim(), 1_000_000)
  assert.match(await done('requests', '--key', prefix), new RegExp(call))
  assert.match(await done('requests'), new RegExp(`${call}.*${created.id}`))
  assert.match(await done('credits', 'back', call, '--reason', 'leaked'), /^Credited \$0\.50 for 1 call/)
  assert.match(await done('keys', 'revoke', prefix), /^Revoked key_/)
  assert.match(await done('keys', 'list', '--account', '*'), /of the second/)
  assert.equal((await run('keys', 'list', '--account', UNKNOWN)).code, 1)
})

test('an account is found by its name, and errors list accounts with their ids', async () => {
  const { done, run } = commands
  const shown = await done('accounts', 'create', 'Globex')
  const [, id = ''] = /^id +(acct_\w{26})\n/.exec(shown) ?? []
  assert.equal(await done('accounts', 'show', 'Globex'), shown)
  assert.match(await done('accounts', 'suspend', 'Globex'), /^status +suspended$/m)
  assert.match(await done('accounts', 'resume', 'Globex'), new RegExp(`^id +${id}$`, 'm'))
  await done('keys', 'create', '--name', 'of Globex', '--account', 'Globex')
  assert.match(await done('keys', 'list', '--account', 'Globex'), /of Globex\n$/)
  assert.match(await done('usage', '--account', 'Globex'), /No call was made/)
  const twin = /acct_\w{26}/.exec(await done('accounts', 'create', 'Globex'))?.[0]
  for (const [args, message] of [
    [['accounts', 'show', 'Globe'], `There is no account "Globe". Did you mean:\n  ${twin}  active, created`],
    [
      ['balance', '--account', 'Nobody'],
      'There is no account "Nobody". `tollgate accounts list` lists them.',
    ],
    [
      ['keys', 'list', '--account', 'Globex'],
      'Several accounts match "Globex". Use the id of the account:\n',
    ],
  ] as const) {
    const { code, stderr } = await run(...args)
    assert.equal(code, 1)
    assert.ok(stderr.includes(message), stderr)
  }
})

const balanceOf = async () => (await commands.gateway.manage('GET', '/gateway/v1/balance'))['balance_usd']
const UNKNOWN_CALL = 'req_01JCN1ZV5M3T9Q8W7E6R5T4Y3X'

test('credit is added to the nanodollar, once per idempotency key', async () => {
  const { done, run } = commands
  assert.match(await done('balance'), /^balance_usd +0\n[\s\S]*enforced +no\n$/)
  const args = ['credits', 'add', '5.000000001', '--reason', 'invoice 1', '--idempotency-key', 'invoice-1']
  assert.match(
    await done(...args),
    /^Added \$5\.000000001 as crd_\w{26}\. The balance is \$5\.000000001\.\n$/,
  )
  assert.match(await done(...args), /^Already added by an earlier run of this command: \$5\.000000001 as/)
  assert.match(await done('balance'), /^balance_usd +5\.000000001\n/)
  const json = JSON.parse(await done('balance', '--json'))
  assert.deepEqual(json, await commands.gateway.manage('GET', '/gateway/v1/balance'))
  for (const amount of ['much', '0', '1e3', '']) {
    const { code, stderr } = await run('credits', 'add', amount, '--reason', 'x')
    assert.equal(code, 2, amount)
    assert.match(stderr, /amount_usd must (be a number|not be 0)/)
  }
  assert.match(
    await done('credits', 'add', '--reason', 'typo', '--', '-2'),
    /^Removed \$2\.00 as crd_\w{26}\. The balance is \$3\.000000001\.\n$/,
  )
  const listed = await done('credits', 'list', '--account', 'default')
  assert.match(
    listed,
    /correction +-2\.0+ +3\.000000001 .*typo\n.*top_up +5\.000000001 +5\.000000001 .*invoice 1\n$/,
  )
  assert.deepEqual(
    JSON.parse(await done('credits', 'list', '--account', 'default', '--json')),
    await commands.gateway.manage('GET', '/gateway/v1/credits'),
  )
})

test('calls are credited back once, from arguments or standard input', async () => {
  const { call, gateway, run, start } = commands
  const ids = [await call(gateway.apiKey, 1_000_000), await call(gateway.apiKey, 2_000_000)]
  const before = Number(await balanceOf())
  const first = await run('credits', 'back', ids[0] ?? '', '--reason', 'refund')
  const [, credited] =
    /^Credited \$([\d.]+) for 1 call\. The balance is \$[\d.]+\.\n$/.exec(first.stdout) ?? []
  assert.ok(Number(credited) > 0, first.stdout + first.stderr)
  const input = `${ids.join('\n')}\n`
  const rest = await start(['credits', 'back', '-', '--reason', 'refund'], { input }).finished
  assert.match(rest.stdout, /^Credited \$[\d.]+ for 1 call\..*\nAlready credited: 1 call\.\n$/)
  const again = await start(['credits', 'back', '-', '--reason', 'refund', '--json'], { input }).finished
  assert.deepEqual([again.code, again.stdout], [0, ''], 'no call is left to credit')
  assert.ok(Number(await balanceOf()) > before)
  const unknown = await run('credits', 'back', UNKNOWN_CALL, '--reason', 'x')
  assert.equal(unknown.code, 1)
  assert.equal(unknown.stderr, `Not found:\n  ${UNKNOWN_CALL}\n`)
  const { key } = await gateway.createKey('capped', { monthly_budget_usd: 0 })
  const refused = await run('credits', 'back', await call(key, 1), '--reason', 'x')
  assert.equal(refused.code, 0)
  assert.match(refused.stdout, /Free calls, so there is nothing to credit back: 1 call\.\n$/)
})

test('a long list of calls is credited in several requests, even if nobody reads the output', async () => {
  const { call, gateway, start } = commands
  const id = await call(gateway.apiKey, 1_000_000)
  const before = Number(await balanceOf())
  const others = Array.from({ length: 1_000 }, (_, n) => `req_0000000000000000${1_000_000_000 + n}`)
  const input = [...others, id].join('\n')
  const command = start(['credits', 'back', '-', '--reason', 'x', '--json'], { input })
  command.stopReading()
  const { code, stderr } = await command.finished
  assert.equal(code, 1)
  assert.match(stderr, /^Not found:\n(?: {2}req_\d+\n){20} {2}and 980 more\n$/)
  assert.ok(Number(await balanceOf()) > before)
})

test('a second account of one name is created, with a warning', async () => {
  const first = await commands.run('accounts', 'create', 'Twin')
  assert.equal(first.stderr, '')
  const second = await commands.run('accounts', 'create', 'Twin')
  assert.equal(second.code, 0)
  assert.match(second.stderr, /^tollgate: Account acct_\w{26} has the name "Twin" too\./)
  assert.match(second.stdout, /\nname +Twin\n/)
})
