import assert from 'node:assert/strict'
import { after, before, test } from '../support/suite.ts'
import { type CommandGateway, startCommandGateway } from './command-gateway.ts'

let commands: CommandGateway
before(async () => {
  commands = await startCommandGateway()
  await commands.call(commands.gateway.apiKey, 1_000)
  await commands.call(commands.gateway.apiKey, 2_000_000, 'claude-opus-4-8')
})
after(() => commands.close())

const api = async (query: string): Promise<string> => {
  const { url, adminKey } = commands.gateway
  return await (
    await fetch(`${url}/v1/usage?${query}`, { headers: { authorization: `Bearer ${adminKey}` } })
  ).text()
}

test('usage is a table by day, model or key, with the total and what was saved', async () => {
  const { done } = commands
  const byModel = await done('usage', '--group-by', 'model')
  assert.match(
    byModel,
    /^Usage from \d{4}-\d\d-01 to [\d-]{10} \(UTC\), amounts in USD\n\nmodel +calls +input +cost +list cost\n/,
  )
  assert.match(byModel, /^claude-haiku-5-5 +1 +1,000 /m)
  assert.match(byModel, /^total +2 +2,001,000 /m)
  assert.match(byModel, /\nSaved 0 of [\d.]+ USD at list prices \(0 %\)\.\n/)
  assert.match(await done('usage'), /^day \(UTC\) +calls [\s\S]*\n20[\d-]{8} +2 /m)
  assert.match(await done('usage', '--group-by', 'key'), /^key_\w{26} {2}test +2 /m)
  const sum = await done('usage', '--group-by', 'none')
  assert.match(sum, /\n\ncalls +input +cost +list cost\n +2 +2,001,000 /)
})

test("JSON and CSV are the API's", async () => {
  const { done } = commands
  const json = await done('usage', '--group-by', 'key,model', '--json')
  assert.equal(json, `${await api('group_by=key,model')}\n`)
  assert.equal(await done('usage', '--format', 'csv'), await api('group_by=day&format=csv'))
})

test('a period without calls says so, and a wrong one is named', async () => {
  const { done, run } = commands
  assert.match(
    await done('usage', '--start', '2020-01-01', '--end', '2020-01-31'),
    /\n\nNothing was used\.\n$/,
  )
  for (const [args, message] of [
    [['--start', 'yesterday'], /start must be/],
    [['--start', '2026-02-01', '--end', '2026-01-01'], /start|end/],
    [['--group-by', 'colour'], /group_by must be/],
    [['--json', '--format', 'csv'], /--json and --format cannot be used together/],
  ] as const) {
    const { code, stdout, stderr } = await run('usage', ...args)
    assert.deepEqual([code, stdout], [2, ''], args.join(' '))
    assert.match(stderr, message)
  }
})
