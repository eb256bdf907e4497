import assert from 'node:assert/strict'
import { closeAfter, test } from '../support/suite.ts'
import { startCommandGateway } from './command-gateway.ts'

const commands = await startCommandGateway()
await commands.call(commands.gateway.apiKey, 1_000)
await commands.call(commands.gateway.apiKey, 2_000_000, 'claude-opus-4-8')
closeAfter(commands)

const api = async (query: string): Promise<string> => {
  const { url, adminKey } = commands.gateway
  return await (
    await fetch(`${url}/v1/usage?${query}`, { headers: { authorization: `Bearer ${adminKey}` } })
  ).text()
}

test('usage is a table by day, model or key, with total and savings', async () => {
  const { done } = commands
  const byModel = await done('usage', '--group-by', 'model')
  assert.match(
    byModel,
    /^Usage from \d{4}-\d\d-01 to [\d-]{10} \(UTC\), amounts in USD\n\nmodel +calls +input +cost +list cost\n/,
  )
  assert.match(byModel, /^claude-haiku-5-5 +1 +1,000 /m)
  assert.match(byModel, /^total +2 +2,001,000 /m)
  assert.match(byModel, /\nSaved 0 USD \(0 %\) of the list cost of [\d.]+ USD\.\n/)
  assert.match(await done('usage'), /^day \(UTC\) +calls [\s\S]*\n20[\d-]{8} +2 /m)
  assert.match(await done('usage', '--group-by', 'key'), /^key_\w{26} {2}test +2 /m)
  assert.match(await done('usage', '--help'), /key, person\s+or\s+account/)
  const sum = await done('usage', '--group-by', 'none')
  assert.match(sum, /\n\ncalls +input +cost +list cost\n +2 +2,001,000 /)
})

test('accounts have names, and an incomplete page says how to read the next one', async () => {
  const { done, run } = commands
  assert.match(
    await done('usage', '--group-by', 'account', '--account', '*'),
    /\naccount +account name +calls .*\ndefault +default +2 /,
  )
  for (const format of [[], ['--json']]) {
    const page = await run('usage', '--group-by', 'model', '--limit', '1', ...format)
    const [, next = ''] =
      /^There are more rows: add --after (\S+) or a larger --limit\.\n$/.exec(page.stderr) ?? []
    const last = await run('usage', '--group-by', 'model', '--after', next, ...format)
    assert.match(last.stdout, /claude-opus-4-8/)
    assert.equal(last.stderr, '')
  }
})

test("JSON and CSV equal the API's responses", async () => {
  const { done } = commands
  const json = await done('usage', '--group-by', 'key,model', '--json')
  assert.equal(json, `${await api('group_by=key,model')}\n`)
  assert.equal(await done('usage', '--format', 'csv'), await api('group_by=day&format=csv'))
})

test('calls without a model have a label in the table, and none in the CSV', async () => {
  const { done, gateway } = commands
  const models = await fetch(`${gateway.url}/v1/models`, { headers: { 'x-api-key': gateway.apiKey } })
  await gateway.manage('GET', `/gateway/v1/requests/${models.headers.get('x-svc-request-id')}`)
  assert.match(await done('usage', '--group-by', 'model'), /^no model +1 /m)
  assert.match(await done('usage', '--group-by', 'model', '--format', 'csv'), /^,1,/m)
})
