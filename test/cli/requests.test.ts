import assert from 'node:assert/strict'
import { fillLog } from '../support/fill-log.ts'
import { changeDatabase } from '../support/read-database.ts'
import { closeAfter, test } from '../support/suite.ts'
import { startCommandGateway } from './command-gateway.ts'

const commands = await startCommandGateway()
const ids: string[] = []
const key = await commands.gateway.createKey('second')
ids.push(await commands.call(commands.gateway.apiKey, 1_000))
ids.push(await commands.call(key.key, 2_000, 'claude-opus-4-8'))
closeAfter(commands)

const api = async (path: string): Promise<string> => {
  const { url, adminKey } = commands.gateway
  return await (await fetch(url + path, { headers: { authorization: `Bearer ${adminKey}` } })).text()
}
const idsIn = (text: string) => text.match(/req_\w{26}/g) ?? []

test('calls are a table, newest first, with the name of their key', async () => {
  const { done, run } = commands
  const table = await done('requests')
  assert.match(
    table,
    /^began \(UTC\) +request +key +model +path +state +status +input +cached +output {2}cost \(USD\)\n/,
  )
  assert.deepEqual(idsIn(table), ids.toReversed())
  assert.match(
    table,
    /^[\d-]{10} [\d:]{8} +req_\w{26} +second +claude-opus-4-8 +\/v1\/messages +settled +200 +2,000 +0 +0 +0\.0100$/m,
  )
  assert.equal(await done('requests', 'list'), table)
  const more = await run('requests', '--limit', '1')
  assert.match(more.stderr, /There are more calls: add --after \S+ or a larger --limit\.\n$/)
  const reversed = await run('requests', '--start', '2020-01-02', '--end', '2020-01-01')
  assert.match(reversed.stderr, /--start: start must not be after end\./)
  const none = await run('requests', '--model', 'none')
  assert.deepEqual([none.code, none.stdout, none.stderr], [0, '', 'No calls match.\n'])
})

test('filters and exports match the API, for the account and for one key', async () => {
  const { done } = commands
  const filters: readonly (readonly [readonly string[], string])[] = [
    [['--model', 'claude-opus-4-8'], 'model=claude-opus-4-8'],
    [['--status', '200'], 'status=200'],
    [['--state', 'settled'], 'state=settled'],
    [['--min-cost', '0.0001'], 'min_cost_usd=0.0001'],
    [['--flag', 'overrun'], 'flag=overrun'],
    [['--start', '2020-01-01', '--end', '2020-01-02'], 'start=2020-01-01&end=2020-01-02'],
    [['--limit', '1'], 'limit=1'],
  ]
  for (const [args, query] of filters) {
    const expected = await api(`/gateway/v1/requests?format=ndjson&${query}`)
    assert.equal(await done('requests', ...args, '--format', 'ndjson'), expected, query)
  }
  const csv = await api(`/v1/keys/${key.id}/requests?format=csv`)
  assert.equal(await done('requests', '--key', 'second', '--format', 'csv'), csv)
  assert.equal(await done('keys', 'requests', 'second', '--format', 'csv'), csv)
})

test('one call is shown with everything that is recorded', async () => {
  const { done, run } = commands
  const [id = ''] = ids
  const shown = await done('requests', 'show', id)
  assert.match(shown, new RegExp(`^id +${id}$`, 'm'))
  assert.match(shown, /^usage\.input_tokens +1,000$/m)
  assert.deepEqual(
    JSON.parse(await done('requests', 'show', id, '--json')),
    JSON.parse(await api(`/gateway/v1/requests/${id}?expand=bill`)),
  )
  const [, bill = ''] = shown.split('\n\n')
  assert.match(bill, /^used +model +quantity +rate \(USD\) +per +amount \(USD\)\n/)
  assert.match(bill, /^input tokens +claude-haiku-5-5 +1,000 +0\.10 +1,000,000 +0\.0001$/m)
  assert.match(
    bill,
    /^total +- +- +- +- +0\.0001\nReserved [\d.]+ USD\. This is the maximum cost of the call: .*\n$/m,
  )
  const none = await run('requests', 'show', 'req_01JCN1ZV5M3T9Q8W7E6R5T4Y3X')
  assert.deepEqual([none.code, none.stdout], [1, ''])
  assert.match(none.stderr, /There is no request with this id/)
})

test('control characters in a model name are masked on a terminal, in every format, but not in files', async () => {
  const { gateway, start, done } = commands
  const evil = '\u001b[2J\u009b\u202emodel'
  await changeDatabase(gateway, `UPDATE call SET model_served = '${evil}' WHERE id = '${ids[0]}'`)
  const terminal = { columns: 200 }
  for (const args of [
    ['--format', 'csv'],
    ['--format', 'ndjson'],
    ['--no-color'],
    ['show', ids[0] ?? '', '--no-color'],
  ]) {
    const { code, stdout } = await start(['requests', ...args], { terminal }).finished
    assert.equal(code, 0)
    assert.match(stdout, /\[2J..model/, args.join(' '))
    assert.doesNotMatch(stdout, /(?!\n)[\p{Cc}\p{Cf}]/u, args.join(' '))
  }
  assert.ok((await done('requests', '--format', 'csv')).includes(evil))
})

/** More rows than pipes and sockets buffer. */
const ROWS = 6_000

test('a long export is complete, and stops when its reader closes', async () => {
  const { gateway, done, start } = commands
  await fillLog(gateway, key.id, ROWS, Date.parse('2020-06-01T00:00:00Z'))
  const args = ['keys', 'requests', key.id, '--end', '2020-06-02', '--format', 'ndjson']
  assert.equal((await done(...args)).split('\n').length - 1, ROWS)
  const unread = start(args)
  await unread.printed(/req_/)
  unread.stopReading()
  const { code, stderr } = await unread.finished
  assert.deepEqual([code, stderr], [0, ''])
  const interrupted = start(args)
  await interrupted.printed(/req_/)
  interrupted.signal('SIGINT')
  assert.equal((await interrupted.finished).signal, 'SIGINT')
})
