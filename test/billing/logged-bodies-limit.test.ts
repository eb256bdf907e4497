import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { startBillingBench } from './bench-of-one.ts'

/** Room for two calls of the kind below, and not for three. */
const bench = await startBillingBench({ settings: { bodiesBytesMax: 30_000 } })
after(() => bench.close())
const { gateway } = bench

/** Text that cannot be compressed to much less than 10,000 bytes. */
const message = () => ({
  model: 'claude-haiku-5-5',
  max_tokens: 16,
  messages: [{ role: 'user', content: randomBytes(10_000).toString('base64') }],
})

async function isKept(requestId: string): Promise<boolean> {
  const { status } = await fetch(`${gateway.url}/gateway/v1/requests/${requestId}/bodies`, {
    headers: { authorization: `Bearer ${gateway.adminKey}` },
  })
  return status === 200
}

/** Polls, since bodies are kept, and deleted, after the answer has left. */
const untilKept = (requestId: string, kept: boolean) =>
  until(
    `the bodies of ${requestId} are ${kept ? 'there' : 'gone'}`,
    async () => (await isKept(requestId)) === kept,
  )

test('logged bodies together take no more than they may: the oldest go', async () => {
  const { key } = await gateway.createKey('logs', { log_requests: true })
  const ids: string[] = []
  for (let n = 0; n < 5; n += 1) {
    const { status, requestId } = await bench.call('/v1/messages', message(), { key })
    assert.equal(status, 200)
    await untilKept(requestId, true)
    ids.push(requestId)
    if (n >= 2) await untilKept(ids[n - 2] ?? '', false)
  }
  assert.deepEqual(await Promise.all(ids.map(isKept)), [false, false, false, true, true])
  // The records of calls without bodies stay.
  assert.equal((await bench.record(ids[0] ?? ''))['state'], 'settled')
})
