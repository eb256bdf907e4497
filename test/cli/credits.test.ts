import assert from 'node:assert/strict'
import { after, before, test } from '../support/suite.ts'
import { type CommandGateway, startCommandGateway } from './command-gateway.ts'

let commands: CommandGateway
before(async () => {
  commands = await startCommandGateway()
})
after(() => commands.close())

const balanceOf = async () => (await commands.gateway.manage('GET', '/gateway/v1/balance'))['balance_usd']
const UNKNOWN = 'req_01JCN1ZV5M3T9Q8W7E6R5T4Y3X'

test('credit is added to the nanodollar, once under one idempotency key', async () => {
  const { done, run } = commands
  assert.match(await done('balance'), /^balance +0 USD\n[\s\S]*enforced +no\n$/)
  const args = ['credits', 'add', '5.000000001', '--reason', 'invoice 1', '--idempotency-key', 'invoice-1']
  assert.match(
    await done(...args),
    /^Added \$5\.000000001 as crd_\w{26}\. The balance is \$5\.000000001\.\n$/,
  )
  assert.match(await done(...args), /^Added before, and not again: \$5\.000000001 as/)
  assert.match(await done('balance'), /^balance +5\.000000001 USD\n/)
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
  const listed = await done('credits', 'list')
  assert.match(
    listed,
    /correction +-2\b.* 3\.000000001 .*typo\n.*top_up +5\.000000001 +5\.000000001 .*invoice 1\n$/,
  )
  assert.deepEqual(
    JSON.parse(await done('credits', 'list', '--json')),
    await commands.gateway.manage('GET', '/gateway/v1/credits'),
  )
})

test('calls are credited back once, from arguments or from standard input', async () => {
  const { call, gateway, run, start } = commands
  const ids = [await call(gateway.apiKey, 1_000_000), await call(gateway.apiKey, 2_000_000)]
  const before = Number(await balanceOf())
  const first = await run('credits', 'back', ids[0] ?? '', '--reason', 'refund')
  const [, credited] =
    /^Credited \$([\d.]+) for 1 call\. The balance is \$[\d.]+\.\n$/.exec(first.stdout) ?? []
  assert.ok(Number(credited) > 0, first.stdout + first.stderr)
  const input = `${ids.join('\n')}\n`
  const rest = await start(['credits', 'back', '-', '--reason', 'refund'], { input }).finished
  assert.match(rest.stdout, /^Credited \$[\d.]+ for 1 call\..*\nCredited before: 1 call\.\n$/)
  const again = await start(['credits', 'back', '-', '--reason', 'refund', '--json'], { input }).finished
  assert.deepEqual([again.code, again.stdout], [0, ''], 'nothing is left to credit')
  assert.ok(Number(await balanceOf()) > before)
  const unknown = await run('credits', 'back', UNKNOWN, '--reason', 'x')
  assert.equal(unknown.code, 1)
  assert.equal(unknown.stderr, `There is no such call:\n  ${UNKNOWN}\n`)
  const { key } = await gateway.createKey('capped', { monthly_budget_usd: 0 })
  const refused = await run('credits', 'back', await call(key, 1), '--reason', 'x')
  assert.equal(refused.code, 0)
  assert.match(refused.stdout, /Never charged, so there is nothing to credit back: 1 call\.\n$/)
})

test('a wrong list moves no money', async () => {
  const { run, call, gateway } = commands
  const id = await call(gateway.apiKey, 1_000_000)
  const before = await balanceOf()
  for (const list of [[id, 'req_1'], [id, id], ['-']]) {
    const { code, stdout } = await run('credits', 'back', ...list, '--reason', 'x')
    assert.deepEqual([code, stdout], [2, ''], list.join(' '))
  }
  assert.equal(await balanceOf(), before)
})

test('more calls than one request takes go in parts, though the reader of the answers has gone', async () => {
  const { call, gateway, start } = commands
  const id = await call(gateway.apiKey, 1_000_000)
  const before = Number(await balanceOf())
  const others = Array.from({ length: 1_000 }, (_, n) => `req_0000000000000000${1_000_000_000 + n}`)
  const input = [...others, id].join('\n')
  const command = start(['credits', 'back', '-', '--reason', 'x', '--json'], { input })
  command.stopReading()
  const { code, stderr } = await command.finished
  assert.equal(code, 1)
  assert.match(stderr, /^There is no such call:\n(?: {2}req_\d+\n){20} {2}and 980 more\n$/)
  assert.ok(Number(await balanceOf()) > before)
})
