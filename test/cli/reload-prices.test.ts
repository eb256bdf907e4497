import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { after, test } from '../support/suite.ts'
import { serveTollgate } from '../support/tollgate-process.ts'
import { until } from '../support/until.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-prices-'))
after(() => rmSync(folder, { recursive: true }))
const file = join(folder, 'prices.json')

const overlay = (input: string) =>
  JSON.stringify(
    { models: [{ id: 'claude-haiku-5-5', rates: { standard: { input, output: '0' } } }] },
    null,
    2,
  )

test('SIGHUP without a file to read again says so in the log', async () => {
  await using tollgate = await serveTollgate({ TOLLGATE_CHAT_URL: 'http://127.0.0.1:9/v1' })
  const said = tollgate.printedToStderr(
    /"msg":"SIGHUP: there is no file to read again, because neither TOLLGATE_PRICES/,
  )
  tollgate.signal('SIGHUP')
  await said
})

test('SIGHUP applies a changed overlay, and keeps the old one if the new one is invalid', async () => {
  const simulator = await startSimulator()
  writeFileSync(file, overlay('1'))
  const tollgate = await serveTollgate({
    TOLLGATE_PRICES: file,
    TOLLGATE_MESSAGES_URL: simulator.messagesUrl,
  })
  try {
    const key = await tollgate.createKey()
    const cost = async () => {
      const response = await fetch(`${tollgate.url}/v1/messages`, {
        method: 'POST',
        headers: {
          'x-api-key': key,
          'anthropic-version': '2023-06-01',
          'x-simulator': 'usage={"input_tokens":1000000,"output_tokens":5}',
        },
        body: '{"model":"claude-haiku-5-5","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}',
      })
      await response.text()
      return response.headers.get('x-svc-list-cost-usd')
    }
    assert.equal(await cost(), '1')

    writeFileSync(file, overlay('2.5'))
    const taken = tollgate.printedToStderr(/"file":"\S+","msg":"the new prices of the file are in use"/)
    tollgate.signal('SIGHUP')
    await taken
    assert.equal(await cost(), '2.5')

    writeFileSync(file, overlay('-3'))
    const refused = tollgate.printedToStderr(
      /"reason":"model ."claude-haiku-5-5.": rates.*"the file was refused, and the former prices stay in use"/,
    )
    tollgate.signal('SIGHUP')
    await refused
    assert.equal(await cost(), '2.5')
    const adminKey = readFileSync(join(tollgate.dataDir, 'admin-key'), 'utf8').trim()
    let refusals: { data: { file: string; reason: string } }[] = []
    await until('the event is recorded', async () => {
      const answer = await fetch(`${tollgate.url}/gateway/v1/events?type=reload.refused`, {
        headers: { authorization: `Bearer ${adminKey}` },
      })
      refusals = ((await answer.json()) as { data: typeof refusals }).data
      return refusals.length > 0
    })
    assert.deepEqual([refusals[0]?.data.file, refusals.length], [file, 1])
    assert.match(String(refusals[0]?.data.reason), /claude-haiku-5-5/)
  } finally {
    await tollgate.dispose()
    await simulator.close()
  }
})
