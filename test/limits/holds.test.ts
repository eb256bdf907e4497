import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { assertBalanced } from '../billing/bench-of-one.ts'
import { startGateway } from '../support/gateway.ts'
import { after, test } from '../support/suite.ts'
import { watchArrivals } from './arrivals.ts'
import { nanosOf } from './read-ledger.ts'

/** A reply that costs $0.40. */
const REPLY = { text: '', usage: { type: 'duration', seconds: 4_000 } }
const answers = Promise.withResolvers<void>()
const upstream = createServer(async (req, res) => {
  req.resume()
  await once(req, 'end')
  if (req.method === 'POST') await answers.promise
  res.writeHead(200, { 'content-type': 'application/json' })
  res.end(JSON.stringify(REPLY))
})
upstream.listen(0, '127.0.0.1')
await once(upstream, 'listening')
const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`

const gateway = await startGateway({
  messagesUrl: url,
  messagesKey: 'pm',
  chatUrl: `${url}/v1`,
  chatKey: 'pc',
})
const arrivals = watchArrivals(gateway.port)
after(async () => {
  arrivals.stop()
  await gateway.close()
  upstream.closeAllConnections()
  await new Promise((resolve) => upstream.close(resolve))
})

const recording = new Response(recordingForm())
const body = gzipSync(await recording.arrayBuffer())
const contentType = recording.headers.get('content-type') ?? ''

function recordingForm(): FormData {
  const form = new FormData()
  form.set('model', 'whisper-1')
  form.set('file', new Blob([Buffer.alloc(1_000_000)]), 'silence.wav')
  return form
}

const CALLS = 50

async function post(key: string, name: string): Promise<Response> {
  return await fetch(`${gateway.url}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': contentType,
      'content-encoding': 'gzip',
      'x-call': name,
    },
    body,
  })
}

/** test/pricing/hold-covers-cost.test.ts proves that the hold of any documented request covers its cost. */
test(`compressed recordings: ${CALLS} concurrent calls exceed a cap of a dollar by at most one call`, async () => {
  const { id, key } = await gateway.createKey('capped', { monthly_budget_usd: 1 })
  const names = Array.from({ length: CALLS }, (_, i) => `recording ${i}`)
  const sent = names.map((name) => post(key, name))
  await Promise.all(names.map((name) => arrivals.arrived(name)))
  // The store has answered the commands of all calls before it answers this request.
  await gateway.manage('PATCH', `/v1/keys/${id}`, { name: 'capped' })
  answers.resolve()
  const costs: number[] = []
  for (const answer of await Promise.all(sent)) {
    await answer.arrayBuffer()
    if (answer.status === 200) costs.push(nanosOf(Number(answer.headers.get('x-svc-list-cost-usd'))))
    else assert.equal(answer.status, 402)
  }
  const delivered = costs.reduce((sum, cost) => sum + cost, 0)
  assert.ok(delivered >= 1_000_000_000, `only ${delivered} was delivered, so nothing is shown`)
  assert.ok(
    delivered <= 1_000_000_000 + Math.max(...costs),
    `${delivered} was delivered in ${costs.length} calls`,
  )
  const record = await gateway.manage('GET', `/v1/keys/${id}`)
  assert.equal(nanosOf(record['month_spend_usd']), delivered)
  await assertBalanced(gateway)
})
