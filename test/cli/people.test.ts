import assert from 'node:assert/strict'
import { signInPerson } from '../support/sign-in-person.ts'
import { closeAfter, test } from '../support/suite.ts'
import { startCommandGateway } from './command-gateway.ts'

const commands = await startCommandGateway()
closeAfter(commands)

test('people are listed, shown, limited, blocked and moved, and what new people get is set', async () => {
  const { done, gateway } = commands
  const { id } = await signInPerson(gateway, 'ada')
  const { id: account } = await gateway.manage('POST', '/gateway/v1/accounts', { name: 'Search' })
  /** Arguments, with ID in place of the id, and the output. */
  const table: readonly (readonly [readonly string[], RegExp])[] = [
    [['list'], new RegExp(`^id +status .*\\n${id} +active +member .* ada@example\\.com +default\\n$`)],
    [['list', '--search', 'bob'], /^$/],
    [['show', 'Ada@example.com'], /\nemail +ada@example\.com\n(.*\n)*role +member\nstatus +active\n/],
    [['update', 'ID', '--monthly-budget', '7.5', '--rpm', '60'], /\nmonthly_budget_usd +7\.5\n/],
    [['update', 'ID', '--monthly-budget', 'none'], /^(?!.*monthly_budget_usd)/s],
    [['block', 'ada@example.com'], /\nstatus +blocked\n/],
    [['list', '--status', 'blocked', '--json'], new RegExp(`"id":"${id}"`)],
    [['unblock', 'ID'], /\nstatus +active\n/],
    [['move', 'ID', '--to', 'Search'], new RegExp(`\\naccount_id +${account}\\n`)],
    [
      ['set-defaults', '--keys-max', '3', '--monthly-budget', '50'],
      /(^|\n)keys_max +3\n(.*\n)*monthly_budget_usd +50\n/,
    ],
    [['defaults', '--json'], /^\{"object":"members","keys_max":3,"key_days_max":90,"monthly_budget_usd":50,/],
  ]
  for (const [args, expected] of table)
    assert.match(
      await done('people', ...args.map((arg) => (arg === 'ID' ? id : arg))),
      expected,
      args.join(' '),
    )
})

test('errors use the terms of the command line', async () => {
  const unknown = 'per_01JCN1ZV5M3T9Q8W7E6R5T4Y3X'
  const table: readonly (readonly [readonly string[], number, RegExp])[] = [
    [['update', unknown], 2, /There is nothing to change/],
    [
      ['set-defaults', '--key-days-max', '500'],
      2,
      /--key-days-max: key_days_max must be a whole number from 1 to 400/,
    ],
    [['show', unknown], 1, /There is no person with this id/],
    [
      ['block', 'nobody@example.com'],
      1,
      /There is no person "nobody@example\.com"\. `tollgate people list` lists/,
    ],
    [
      ['block', 'ada@'],
      1,
      /There is no person "ada@"\. Did you mean:\n {2}per_\w+ {2}active, .* ada@example\.com\n/,
    ],
    [['move', unknown], 2, /--to <account>/],
  ]
  for (const [args, code, message] of table) {
    const run = await commands.run('people', ...args)
    assert.equal(run.code, code, args.join(' '))
    assert.match(run.stderr, message)
  }
})

test('usage by person has the email', async () => {
  const { done, gateway, call } = commands
  const { headers } = await signInPerson(gateway, 'eve')
  const body = JSON.stringify({ name: 'own', person: 'me' })
  const created = await fetch(`${gateway.url}/v1/keys`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body,
  })
  const { key } = (await created.json()) as { key: string }
  await call(key, 1_000)
  const table = await done('usage', '--group-by', 'person')
  assert.match(table, /^person +email +calls .*\nper_\w{26} +eve@example\.com +1 .*\ntotal +- +1 /m)
})
