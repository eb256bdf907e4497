import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { assertAllWrong, type CommandBench, startCommandBench, WAYS, type Way } from './command-bench.ts'

const UNKNOWN = 'req_01JCN1ZV5M3T9Q8W7E6R5T4Y3X'

let bench: CommandBench
const calls: string[] = []
let left = ''
before(async () => {
  bench = await startCommandBench()
  // The calls are made before any credit is added: from then on credit would be enforced.
  for (let made = 0; made < 7; made++) await bench.gateway.call(1_000)
  await bench.gateway.call(0)
  const { data } = JSON.parse(await bench.api('/gateway/v1/requests'))
  calls.push(...data.map(({ id }: { id: string }) => id))
  left = calls.pop() ?? ''
})
after(() => bench.close())

async function balance(): Promise<number> {
  return JSON.parse(await bench.api('/gateway/v1/balance')).balance_usd
}

for (const way of WAYS) {
  test(`calls are given back ${way}, each once`, async () => {
    const [free = '', ...paid] = calls
    const own = way === 'locally' ? paid.slice(0, 3) : paid.slice(3)
    const [first = '', ...others] = own
    const before = await balance()

    const one = await bench.run(way, ['credits', 'back', first, '--reason', 'refund'])
    const left = String(Math.round((before + 0.0001) * 1e9) / 1e9)
    assert.deepEqual(one, {
      code: 0,
      signal: null,
      stdout: `Given back 0.0001 USD for 1 call. The balance is ${left} USD.\n`,
      stderr: '',
    })
    // Ids come from standard input too, some of them of calls that move no money.
    const input = `${first}\n${others.join(' \r\n')}\n\n`
    const several = await bench.run(way, ['credits', 'back', free, '-', '--reason', 'refund'], { input })
    assert.deepEqual([several.code, several.stderr], [0, ''])
    assert.match(
      several.stdout,
      /^Given back 0\.0002 USD for 2 calls\. The balance is -?[\d.]+ USD\.\nCost nothing: 1 call\.\nGiven back before: 1 call\.\n$/,
    )
    assert.equal(await balance(), Math.round((before + 0.0003) * 1e9) / 1e9)
  })

  test(`a call that is not there is named, ${way}, and fails the command`, async () => {
    const missing = await bench.run(way, ['credits', 'back', UNKNOWN, calls[0] ?? '', '--reason', 'refund'])
    assert.equal(missing.code, 1)
    assert.match(
      missing.stdout,
      /^Given back 0 USD for 0 calls\.[^\n]*\nNot found: 1 call\.\nCost nothing: 1 call\.\n$/,
    )
    assert.equal(missing.stderr, `There is no such call:\n  ${UNKNOWN}\n`)
    const json = await bench.run(way, ['credits', 'back', UNKNOWN, '--reason', 'refund', '--json'])
    assert.equal(json.code, 1)
    assert.equal(JSON.parse(json.stdout).data[0].outcome, 'not_found')
  })

  test(`more calls than one request takes are given back in parts, ${way}`, async () => {
    const ids = Array.from({ length: 1_001 }, (_, at) => `req_0${way.length}${String(at).padStart(24, '0')}`)
    const args = ['credits', 'back', '-', '--reason', 'refund']
    const parts = await bench.run(way, [...args, '--json'], { input: ids.join('\n') })
    const sizes = parts.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).data.length)
    assert.deepEqual([parts.code, sizes], [1, [1_000, 1]])
    const table = await bench.run(way, args, { input: ids.join('\n'), terminal: { columns: 80 } })
    assert.match(table.stdout, /\nNot found: 1,001 calls\.\n$/)
    assert.match(table.stderr, /^\rCrediting back \[[\s\S]*\n {2}and 981 more\n$/)
  })
}

test('all calls are given back though the reader of the answers has gone', async () => {
  const before = await balance()
  const missing = Array.from({ length: 1_000 }, (_, at) => `req_02${String(at).padStart(24, '0')}`)
  const input = [...missing, left].join('\n')
  const unread = bench.start('locally', ['credits', 'back', '-', '--reason', 'refund', '--json'], { input })
  unread.stopReading()
  assert.equal((await unread.finished).code, 1)
  assert.equal(await balance(), Math.round((before + 0.0001) * 1e9) / 1e9)
})

test('a wrong list moves no money at all', async () => {
  const before = await balance()
  const many = Array.from({ length: 1_500 }, (_, at) => `req_01${String(at).padStart(24, '0')}`)
  for (const wrong of [
    [...many, 'req_x'],
    [...many, many[0]],
  ]) {
    const input = [calls[1], ...wrong].join('\n')
    const refused = await bench.run('locally', ['credits', 'back', '-', '--reason', 'refund'], { input })
    assert.deepEqual([refused.code, refused.stdout], [2, ''])
    assert.match(refused.stderr, /^tollgate credits back: <request-id>: req_\w+ is (?:none|there twice)/)
  }
  assert.equal(await balance(), before)
})

test('prepaid credit is added to the nanodollar, once under one name', async () => {
  const add = (way: Way, ...args: string[]) =>
    bench.run(way, ['credits', 'add', ...args, '--reason', 'prepaid'])
  const before = await balance()
  for (const way of WAYS) {
    const once = ['--idempotency-key', `invoice ${way}`]
    const added = await add(way, '12.000000001', ...once)
    assert.equal(added.code, 0, added.stderr)
    assert.match(added.stdout, /^Added 12\.000000001 USD as crd_\w{26}\. The balance is [\d.]+ USD\.\n$/)
    const again = await add(way, '12.000000001', ...once)
    assert.equal(again.code, 0)
    assert.match(again.stdout, /^Added before, and not again: 12\.000000001 USD as crd_/)
    const other = await add(way, '13', ...once)
    assert.equal(other.code, 1)
    assert.match(other.stderr, /^tollgate credits add: .*Idempotency-Key was used for another request/)
  }
  const json = await add('locally', '0.5', '--json')
  assert.deepEqual(JSON.parse(json.stdout).amount_usd, 0.5)
  assert.equal(await balance(), Math.round((before + 24.500000002) * 1e9) / 1e9)
})

test('a wrong command line ends with 2 and names what is wrong with it', async () => {
  const reason = ['--reason', 'x']
  await assertAllWrong(bench, 'credits', [
    [
      ['add', ...reason],
      /^tollgate credits add: name one <amount>[\s\S]*\n\nUsage\n {2}tollgate credits add /,
    ],
    [['add', '1', '2', ...reason], /name one <amount>/],
    [['add', '1'], /--reason is required/],
    [['add', '1', '--reason', ''], /--reason: reason must not be empty/],
    [['add', 'much', ...reason], /<amount>: amount_usd must be a number/],
    [['add', '0', ...reason], /<amount>: amount_usd must be a number/],
    [['add', '1', ...reason, '--idempotency-key', ''], /--idempotency-key: /],
    [['back', ...reason], /<request-id>, or - to read them/],
    [['back', '-', ...reason], /<request-id>, or - to read them/],
    [['back', UNKNOWN], /--reason is required/],
    [['back', UNKNOWN, '--reason', ''], /--reason: reason must not be empty/],
    [['back', 'x', ...reason], /<request-id>: x is none\. Each of request_ids must be `req_` and a ULID/],
    [['back', UNKNOWN, UNKNOWN, ...reason], /<request-id>: req_\w+ is there twice/],
    [['take'], /there is no action "take"/],
  ])
  for (const action of ['add', 'back']) {
    const help = await bench.run('locally', ['credits', action, '--help'])
    assert.equal(help.code, 0)
    assert.ok(help.stdout.startsWith(`Usage\n  tollgate credits ${action} `))
    assert.match(help.stdout, /\nExamples\n[\s\S]*\nWhere\n[\s\S]*\nExit codes\n/)
  }
})
