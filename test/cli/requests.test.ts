import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { changeBooks } from '../support/books.ts'
import { fillLog } from '../support/fill-log.ts'
import type { RunningCommand } from '../support/tollgate-process.ts'
import { until } from '../support/until.ts'
import { assertAllWrong, type CommandBench, startCommandBench, WAYS } from './command-bench.ts'

const UNKNOWN = 'key_01JCN1ZV5M3T9Q8W7E6R5T4Y3X'

let bench: CommandBench
let key = { id: '', key: '' }
/** The id of a call that stands for a handshake. */
let socket = ''
before(async () => {
  bench = await startCommandBench()
  const created = await bench.run('locally', ['keys', 'create', '--name', 'second', '--json'])
  key = JSON.parse(created.stdout)
  await bench.gateway.call(1_000)
  await bench.gateway.call(2_000, 'claude-opus-4-8')
  socket = (await call(key.key, 'status=429')).id
  await changeBooks(bench.gateway.tollgate, `UPDATE call SET socket_id = id WHERE id = '${socket}'`)
})
after(() => bench.close())

/** A call with the key, and its id. A stream resolves as soon as it has begun, and goes on until it is left. */
async function call(apiKey: string, simulate: string, stream = false) {
  const leaving = new AbortController()
  const response = await fetch(`${bench.gateway.tollgate.url}/v1/messages`, {
    method: 'POST',
    signal: leaving.signal,
    headers: { 'x-api-key': apiKey, 'anthropic-version': '2023-06-01', 'x-simulator': simulate },
    body: JSON.stringify({
      model: 'claude-haiku-5-5',
      max_tokens: 9_000,
      stream,
      messages: [{ role: 'user', content: 'Hi' }],
    }),
  })
  const ended = response.arrayBuffer().catch(() => {})
  if (!stream) await ended
  return {
    id: String(response.headers.get('x-svc-request-id')),
    async leave() {
      leaving.abort()
      await ended
    },
  }
}

const idsIn = (text: string) => text.match(/req_\w{26}/g) ?? []

for (const way of WAYS) {
  test(`the log is a plain table in a pipe, ${way}, newest first`, async () => {
    const { code, stdout, stderr } = await bench.run(way, ['requests', '--limit', '3'])
    assert.deepEqual([code, stderr], [0, ''])
    const head =
      /^began \(UTC\) +request +key +model +path +status +input +cached +output +cost \(USD\) {2}flags\n/
    assert.match(stdout, head)
    const newest = JSON.parse(await bench.api('/gateway/v1/requests?limit=3')).data
    assert.deepEqual(
      idsIn(stdout),
      newest.map(({ id }: { id: string }) => id),
    )
    const one = await bench.run(way, ['requests', '--model', 'claude-opus-4-8'])
    const line =
      /^[\d-]{10} [\d:]{8} {2}req_\w{26} {2}key_\w{26} {2}claude-opus-4-8 +\/v1\/messages +200 +2,000 +0 +0 +0\.010000000 {2}overrun$/m
    assert.match(one.stdout, line)
  })

  test(`each filter is the API's, ${way}`, async () => {
    const filters: readonly (readonly [readonly string[], string])[] = [
      [['--model', 'claude-opus-4-8'], 'model=claude-opus-4-8'],
      [['--status', '429'], 'status=429'],
      [['--status', 'released'], 'status=released'],
      [['--min-cost', '0.0001'], 'min_cost_usd=0.0001'],
      [['--flag', 'streamed'], 'flag=streamed'],
      [['--start', '2020-01-01', '--end', '2020-01-02'], 'start=2020-01-01&end=2020-01-02'],
      [['--limit', '1'], 'limit=1'],
      [['--socket', socket], `socket=${socket}`],
    ]
    await Promise.all(
      filters.map(async ([args, query]) => {
        const { code, stdout } = await bench.run(way, ['requests', ...args, '--json'])
        const expected = await bench.api(`/gateway/v1/requests?format=ndjson&${query}`)
        assert.deepEqual([code, stdout], [0, expected], args.join(' '))
      }),
    )
    const ofKey = await bench.run(way, ['requests', '--key', key.id, '--csv'])
    assert.deepEqual(
      [ofKey.code, ofKey.stdout],
      [0, await bench.api(`/v1/keys/${key.id}/requests?format=csv`)],
    )
    assert.equal(ofKey.stdout.split('\r\n').length > 2, true)
    const none = await bench.run(way, ['requests', '--model', 'none'])
    assert.deepEqual([none.code, none.stdout, none.stderr], [0, '', 'There is no such call.\n'])
    const unknown = await bench.run(way, ['requests', '--key', UNKNOWN, '--json'])
    assert.deepEqual(
      [unknown.code, unknown.stderr],
      [1, 'tollgate requests: There is no key with this id.\n'],
    )
  })

  test(`--follow prints each call once, when it has ended, ${way}, and ends cleanly when interrupted`, async () => {
    const args = ['requests', '--follow', '--limit', '0', '--key', key.id]
    const slow = await call(key.key, 'tokens=9000; drip=50', true)
    const following = [bench.start(way, [...args, '--json']), bench.start(way, args)]
    const sign = await untilSeen(following)
    const quick = await call(key.key, 'tokens=1')
    await Promise.all(following.map((each) => each.printed(new RegExp(quick.id))))
    await slow.leave()
    await Promise.all(following.map((each) => each.printed(new RegExp(slow.id))))
    const last = await call(key.key, 'status=429')
    await Promise.all(following.map((each) => each.printed(new RegExp(last.id))))

    for (const each of following) each.signal('SIGINT')
    const [asJson, asTable] = await Promise.all(following.map((each) => each.finished))
    for (const end of [asJson, asTable]) {
      assert.deepEqual([end?.code, end?.signal, end?.stderr], [0, null, ''])
      const printed = idsIn(end?.stdout ?? '')
      assert.equal(new Set(printed).size, printed.length, 'a call was printed twice')
      const own = printed.filter((id) => !sign.has(id))
      assert.deepEqual(own, [quick.id, slow.id, last.id])
    }
    for (const line of (asJson?.stdout ?? '').trim().split('\n')) {
      const { id, state } = JSON.parse(line)
      assert.notEqual(state, 'in_flight')
      assert.equal(line, await bench.api(`/gateway/v1/requests/${id}`))
    }
  })
}

/** Makes calls until all followers have printed one: from then on all of them look at the log. */
async function untilSeen(following: readonly RunningCommand[]): Promise<Set<string>> {
  const made = new Set<string>()
  const waiting = new Set(following)
  for (let attempt = 0; waiting.size > 0 && attempt < 100; attempt++) {
    const { id } = await call(key.key, 'tokens=1')
    made.add(id)
    await Promise.race([
      Promise.all(
        [...waiting].map(async (each) => {
          await each.printed(new RegExp([...made].join('|')))
          waiting.delete(each)
        }),
      ),
      new Promise((resolve) => setTimeout(resolve, 300)),
    ])
  }
  assert.equal(waiting.size, 0, 'a follower printed nothing')
  return made
}

test('--follow shows earlier calls first, oldest first, and a filter holds for what comes', async () => {
  const args = ['requests', '--follow', '--limit', '2', '--status', '429', '--json']
  const earlier = [await call(key.key, 'status=429'), await call(key.key, 'status=429')]
  const following = bench.start('locally', args)
  await following.printed(new RegExp(`${earlier[0]?.id}[\\s\\S]*${earlier[1]?.id}`))
  await call(key.key, 'tokens=1')
  const matching = await call(key.key, 'status=429')
  await following.printed(new RegExp(matching.id))
  following.signal('SIGTERM')
  const { code, stdout } = await following.finished
  assert.equal(code, 0)
  const printed = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).id)
  assert.deepEqual(printed, [...earlier.map(({ id }) => id), matching.id])
})

test('--follow outlasts a gateway that goes away, and the books are there without one', async () => {
  const mortal = await startCommandBench()
  try {
    await mortal.gateway.call(1_000)
    const following = mortal.start('over HTTP', ['requests', '--follow'])
    await following.printed(/began \(UTC\)[\s\S]*claude-haiku-5-5/)
    mortal.gateway.tollgate.signal('SIGKILL')
    await mortal.gateway.tollgate.finished
    const complaint = await following.complained(/Trying again/)
    assert.match(complaint, /cannot be reached|broke off/)
    following.signal('SIGINT')
    assert.equal((await following.finished).code, 0)

    const absent = await mortal.run('over HTTP', ['requests', '--follow'])
    assert.deepEqual([absent.code, absent.stdout], [1, ''])
    assert.match(absent.stderr, /cannot be reached: .*ECONNREFUSED.* Is the gateway running there\?/)
    const alone = await mortal.run('locally', ['requests'])
    assert.equal(idsIn(alone.stdout).length, 1)
    const created = await mortal.run('locally', ['keys', 'create', '--name', 'made without a gateway'])
    assert.equal(created.code, 0)
    assert.match((await mortal.run('locally', ['keys', 'list'])).stdout, /made without a gateway/)
  } finally {
    await mortal.close()
  }
})

test('on a terminal there is colour, and a narrow one leaves out what can be done without', async () => {
  const args = ['requests', '--limit', '50']
  const wide = await bench.run('locally', args, { terminal: { columns: 240 } })
  assert.match(wide.stdout, /\x1b\[1mkey\x1b\[22m/)
  assert.match(wide.stdout, / key_\w{26} .*\x1b\[31m429\x1b\[39m/)
  assert.match(wide.stdout, /\x1b\[32m200\x1b\[39m/)
  const narrow = await bench.run('locally', [...args, '--no-color'], { terminal: { columns: 100 } })
  assert.ok(!narrow.stdout.includes('\x1b') && !narrow.stdout.includes('key_'))
  assert.deepEqual(idsIn(narrow.stdout), idsIn(wide.stdout))
  assert.match(narrow.stdout, /^began \(UTC\) +request +model +status +input +output +cost/)
  const medium = await bench.run('locally', [...args, '--no-color'], { terminal: { columns: 175 } })
  assert.match(medium.stdout, /^began \(UTC\) +request +model +path +status +input +cached +output +cost/)
})

for (const way of WAYS) {
  test(`refused calls are shown where they are asked for, with the reason, ${way}`, async () => {
    const args = ['keys', 'create', '--name', `spent ${way}`, '--monthly-budget', '0', '--json']
    const spent = JSON.parse((await bench.run(way, args)).stdout)
    const { id } = await call(spent.key, 'tokens=1')
    // The API answers when the refusal is written; from then on a command beside the gateway sees it.
    await bench.api(`/gateway/v1/requests/${id}`)
    const table = await bench.run(way, ['requests', '--state', 'refused', '--key', spent.id])
    assert.match(
      table.stdout,
      new RegExp(
        `\\n[\\d-]{10} [\\d:]{8}  ${id}  ${spent.id} .* /v1/messages +402 .* 0\\.000000000  budget_exceeded\\n$`,
      ),
    )
    const json = await bench.run(way, ['requests', '--flag', 'refused', '--key', spent.id, '--json'])
    assert.equal(json.stdout, `${await bench.api(`/gateway/v1/requests/${id}`)}\n`)
    const others = await bench.run(way, ['requests', '--key', spent.id])
    assert.deepEqual([others.stdout, others.stderr], ['', 'There is no such call.\n'])
  })
}

test('calls that wait in the gateway come first in its table, and are on the key', async () => {
  const args = ['keys', 'create', '--name', 'busy', '--monthly-budget', '0.0001', '--json']
  const busy = JSON.parse((await bench.run('locally', args)).stdout)
  const holding = await call(busy.key, 'tokens=9000; drip=50', true)
  const second = call(busy.key, 'tokens=1')
  const path = `/v1/keys/${busy.id}/requests?state=waiting`
  await until('it waits', async () => JSON.parse(await bench.api(path)).data.length > 0)
  const over = await bench.run('over HTTP', ['requests', '--key', 'busy'])
  const [, first = '', next = ''] = over.stdout.split('\n')
  assert.match(first, / waiting +- +- +- +-$/)
  assert.match(next, new RegExp(`${holding.id} .* in flight `))
  const one = await bench.run('over HTTP', ['requests', '--key', 'busy', '--limit', '1'])
  assert.deepEqual(idsIn(one.stdout), idsIn(first))
  assert.match(
    (await bench.run('over HTTP', ['keys', 'show', 'busy'])).stdout,
    /\n {2}waiting {7}calls for room under the cap or for credit: 1\n/,
  )
  // A local command does not see waiting calls, which are in the memory of the gateway.
  assert.deepEqual(idsIn((await bench.run('locally', ['requests', '--key', 'busy'])).stdout), [holding.id])
  await holding.leave()
  await second
  const after = await bench.run('over HTTP', ['requests', '--key', 'busy'])
  assert.deepEqual(idsIn(after.stdout).toSorted(), [holding.id, ...idsIn(first)].toSorted())
})

test('a model name cannot draw on the terminal', async () => {
  await bench.gateway.tamper(
    "UPDATE call SET model_served = '\x1b[2Jmodel' WHERE model_asked = 'claude-opus-4-8'",
  )
  const { stdout } = await bench.run('locally', ['requests', '--model', 'claude-opus-4-8'])
  assert.ok(stdout.includes('?[2Jmodel') && !stdout.includes('\x1b'), stdout)
})

/** So many rows are 10 MB of JSON, more than pipes and sockets hold. */
const ROWS = 12_000

test('a long export is whole, says on the terminal how far it is, and stops when nobody reads it', async () => {
  await fillLog(bench.gateway.tollgate, key.id, ROWS, Date.parse('2020-06-01T00:00:00Z'))
  const args = ['requests', '--key', key.id, '--end', '2020-06-02']
  const counts = await Promise.all(
    WAYS.map(async (way) => {
      const csv = await bench.run(way, [...args, '--csv'], { terminal: { columns: 80, only: 'stderr' } })
      assert.equal(csv.code, 0)
      assert.match(csv.stderr, /^(?:\rCalls: [\d,]+)+\r\x1b\[K$/)
      return csv.stdout.split('\r\n').length - 2
    }),
  )
  assert.deepEqual(counts, [ROWS, ROWS])
  const quiet = await bench.run('locally', [...args, '--json'])
  assert.deepEqual([quiet.stdout.split('\n').length - 1, quiet.stderr], [ROWS, ''])
  const table = await bench.run('locally', [...args, '--limit', '2500'])
  assert.equal(idsIn(table.stdout).length, 2_500)

  const unread = bench.start('over HTTP', [...args, '--json'])
  await unread.printed(/req_/)
  unread.stopReading()
  const { code, stderr } = await unread.finished
  assert.deepEqual([code, stderr], [0, ''])
})

test('a wrong command line ends with 2 and names what is wrong with it', async () => {
  await assertAllWrong(bench, 'requests', [
    [['--key', ''], /^tollgate requests: --key: [\s\S]*\n\nUsage\n {2}tollgate requests /],
    [['--model', ''], /--model: model must be a text/],
    [['--status', 'bad'], /--status: status must be an HTTP status/],
    [['--min-cost', '-1'], /--min-cost/],
    [['--min-cost', 'much'], /--min-cost: min_cost_usd must be a plain decimal/],
    [['--socket', 'x'], /--socket: socket must be the id of a request/],
    [['--flag', 'red'], /--flag: flag must be one of streamed/],
    [['--start', 'x'], /--start: start must be a date/],
    [['--start', '2026-01-02', '--end', '2026-01-01'], /--(?:start|end): .* (?:after|before) /],
    [['--limit', '0'], /--limit: limit must be a whole number/],
    [['--limit', '0', '--json'], /--limit: limit must be a whole number/],
    [['--json', '--csv'], /--json and --csv cannot be used together/],
    [['--follow', '--csv'], /--follow prints a table, or with --json/],
    [['--follow', '--start', '2026-01-01'], /--follow goes on from now, without --start or --end/],
    [['--state', 'bad'], /--state: state must be one of waiting, in_flight/],
    [['--state', 'settled', '--flag', 'refused'], /--state: .* must not name different states/],
    [
      ['--follow', '--status', 'in_flight'],
      /--follow shows calls that were sent and have ended, so in_flight/,
    ],
    [['--follow', '--state', 'waiting'], /--follow shows .* so waiting shows none/],
    [['--follow', '--flag', 'refused'], /--follow shows .* so refused shows none/],
    [['--follow', '--limit', '1001'], /--limit must be a whole number from 0 to 1000 with --follow/],
    [['--follow', '--flag', 'red'], /--flag: /],
    [['--modle', 'x'], /'--modle'.* Did you mean --model\?/],
  ])
  const help = await bench.run('locally', ['requests', '--help'])
  assert.equal(help.code, 0)
  assert.match(
    help.stdout,
    /^Usage\n {2}tollgate requests [\s\S]*\nExamples\n[\s\S]*\nWhere\n[\s\S]*\nExit codes\n/,
  )
})
