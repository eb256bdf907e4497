import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as conventions from '@opentelemetry/semantic-conventions/incubating'
import { startBillingBench } from '../billing/bench-of-one.ts'
import { closedPort } from '../support/closed-port.ts'
import { withDeadline } from '../support/deadline.ts'
import { after, closeAfter, test } from '../support/suite.ts'

type Json = Record<string, unknown>

interface Span {
  readonly name: string
  readonly kind: number
  readonly traceId: string
  readonly parentSpanId: string
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly status: { readonly code?: number }
  readonly attributes: Readonly<Record<string, unknown>>
  readonly resource: Readonly<Record<string, unknown>>
}

interface Attribute {
  readonly key: string
  readonly value: Readonly<Record<string, unknown>>
}

const readAttributes = (list: readonly Attribute[]) =>
  Object.fromEntries(list.map(({ key, value }) => [key, plain(value)]))

function plain(value: Readonly<Record<string, unknown>>): unknown {
  const [[kind, held] = []] = Object.entries(value)
  return kind === 'intValue' ? Number(held) : held
}

async function startCollector() {
  const spans: Span[] = []
  const requests: {
    readonly path: string
    readonly authorization: string | undefined
    readonly text: string
  }[] = []
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += chunk
    requests.push({ path: request.url ?? '', authorization: request.headers.authorization, text })
    const { resourceSpans } = JSON.parse(text) as {
      resourceSpans: {
        resource: { attributes: Attribute[] }
        scopeSpans: { spans: (Span & { attributes: unknown })[] }[]
      }[]
    }
    for (const { resource, scopeSpans } of resourceSpans) {
      for (const span of scopeSpans.flatMap((scope) => scope.spans)) {
        const attributes = readAttributes(span.attributes as unknown as Attribute[])
        spans.push({ ...span, attributes, resource: readAttributes(resource.attributes) })
      }
    }
    response.setHeader('content-type', 'application/json').end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, spans, requests, close: () => server.close() }
}

const collector = await startCollector()
closeAfter(collector)

/** The exporter reads these variables from the process, the gateway from its argument. */
const env = {
  OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20collector',
  OTEL_SERVICE_NAME: 'gateway-of-tests',
  OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
}
Object.assign(process.env, env)
after(() => {
  for (const name of Object.keys(env)) delete process.env[name]
})

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const PARENT = 'b7ad6b7169203331'

const message = {
  model: 'claude-haiku-5-5',
  max_tokens: 20,
  messages: [{ role: 'user', content: 'a secret of mine' }],
}

/** The spans in the order of their calls: a broken call may end after the next one. */
async function spansOf(
  calls: (bench: Awaited<ReturnType<typeof startBillingBench>>) => Promise<void>,
  more: Record<string, string> = {},
): Promise<readonly Span[]> {
  const bench = await startBillingBench({ env: { ...env, ...more } })
  const before = collector.spans.length
  try {
    await calls(bench)
  } finally {
    await bench.close()
  }
  const startOf = ({ startTimeUnixNano }: Span) => Number(BigInt(startTimeUnixNano) / 1_000n)
  return collector.spans.slice(before).sort((one, other) => startOf(one) - startOf(other))
}

test("a call is a span by the GenAI conventions, and a child of the client's span", async () => {
  let record: Json = {}
  let upstreamUrl = ''
  const usage = `usage=${JSON.stringify({ input_tokens: 7, output_tokens: 5, cache_read_input_tokens: 11, cache_creation_input_tokens: 13 })}`
  const spans = await spansOf(async (bench) => {
    upstreamUrl = bench.simulator.messagesUrl
    const lines = [`traceparent: 00-${TRACE}-${PARENT}-01`]
    const reply = await bench.call('/v1/messages', message, { lines, simulate: usage })
    record = await bench.record(reply.requestId)
  })
  assert.equal(spans.length, 1)
  const [span] = spans
  assert.ok(span !== undefined)
  assert.equal(span.name, 'chat claude-haiku-5-5')
  assert.equal(span.kind, 3, 'an HTTP client for upstream')
  assert.equal(span.traceId, TRACE)
  assert.equal(span.parentSpanId, PARENT)
  assert.equal(span.status.code ?? 0, 0)
  assert.ok(BigInt(span.endTimeUnixNano) > BigInt(span.startTimeUnixNano))
  assert.ok(Math.abs(Number(span.endTimeUnixNano) / 1e6 - Date.now()) < 600_000)
  const { hostname, port } = new URL(upstreamUrl)
  assert.deepEqual(span.attributes, {
    'gen_ai.operation.name': conventions.GEN_AI_OPERATION_NAME_VALUE_CHAT,
    'gen_ai.provider.name': conventions.GEN_AI_PROVIDER_NAME_VALUE_ANTHROPIC,
    'gen_ai.request.model': 'claude-haiku-5-5',
    'gen_ai.response.model': 'claude-haiku-5-5',
    'gen_ai.usage.input_tokens': 31,
    'gen_ai.usage.output_tokens': 5,
    'gen_ai.usage.cache_read.input_tokens': 11,
    'gen_ai.usage.cache_creation.input_tokens': 13,
    'server.address': hostname,
    'server.port': Number(port),
    'http.response.status_code': 200,
    'tollgate.request_id': record['id'],
    'tollgate.cost_usd': record['cost_usd'],
    'tollgate.key_id': record['key_id'],
  })
  assert.equal(span.resource['service.name'], 'gateway-of-tests')
  assert.equal(span.resource['deployment.environment.name'], 'test')
  const sent = collector.requests.at(-1)
  assert.equal(sent?.path, '/v1/traces')
  assert.equal(sent?.authorization, 'Bearer collector')
})

test('upstream errors, refusals and broken replies have an error.type, and unsent calls no server', async () => {
  const spans = await spansOf(async (bench) => {
    const poor = await bench.gateway.createKey('poor', { monthly_budget_usd: 0 })
    await bench.call('/v1/messages', message, { simulate: 'status=429' })
    await bench.call('/v1/messages', message, { key: poor.key })
    await bench
      .call('/v1/messages', { ...message, stream: true }, { simulate: 'cut=event:3' })
      .catch(() => {})
    await bench.call('/v1/messages', message, { simulate: 'reset' })
    await bench.call('/v1/models', undefined, { method: 'GET' })
  })
  const about = spans.map(({ name, status, attributes }) => [
    ...[name, status.code ?? 0, attributes['error.type'], attributes['http.response.status_code']],
    'server.address' in attributes,
  ])
  assert.deepEqual(about, [
    ['chat claude-haiku-5-5', 2, '429', 429, true],
    ['chat claude-haiku-5-5', 2, 'budget_exceeded', 402, false],
    ['chat claude-haiku-5-5', 2, 'reply_cut', 200, true],
    ['chat claude-haiku-5-5', 2, 'upstream_unreachable', undefined, true],
    ['GET /v1/models', 0, undefined, 200, true],
  ])
})

test('an unsampled parent is not sampled, and an invalid one begins a new trace', async () => {
  const spans = await spansOf(async (bench) => {
    const lines = (...parents: string[]) => ({ lines: parents.map((parent) => `traceparent: ${parent}`) })
    await bench.call('/v1/messages', message, lines(`00-${TRACE}-${PARENT}-00`))
    for (const bad of [
      `00-${TRACE.toUpperCase()}-${PARENT}-01`,
      `00-${'0'.repeat(32)}-${PARENT}-01`,
      'nonsense',
    ])
      await bench.call('/v1/messages', message, lines(bad))
    await bench.call('/v1/messages', message, lines(`00-${TRACE}-${PARENT}-01`, `00-${TRACE}-${PARENT}-01`))
    await bench.call('/v1/messages', message)
  })
  assert.equal(spans.length, 5)
  for (const { traceId, parentSpanId } of spans) {
    assert.match(traceId, /^[\da-f]{32}$/)
    assert.notEqual(traceId, TRACE)
    assert.equal(parentSpanId ?? '', '')
  }
  assert.equal(new Set(spans.map(({ traceId }) => traceId)).size, 5)
})

test('spans contain no request text, response text or secret', () => {
  const all = collector.requests.map(({ text }) => text).join('\n')
  assert.ok(all.length > 1_000)
  assert.ok(!all.includes('a secret of mine'))
  assert.doesNotMatch(all, /svc_(?:live|admin)_/)
})

test('an unreachable collector costs no call, and delays the stop only up to its limit', async () => {
  const gone = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await closedPort()}` }
  Object.assign(process.env, gone)
  try {
    const bench = await startBillingBench({ env: { ...env, ...gone } })
    assert.equal((await bench.call('/v1/messages', message)).status, 200)
    await withDeadline(bench.close(), () => 'the stop waits for the collector')
  } finally {
    Object.assign(process.env, env)
  }
})

test('the variables OTEL_BSP_* apply: a batch of one span is one request', async () => {
  const before = collector.requests.length
  const spans = await spansOf(
    async (bench) => {
      for (let i = 0; i < 3; i += 1) await bench.call('/v1/messages', message)
    },
    { OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '1', OTEL_BSP_SCHEDULE_DELAY: '60000' },
  )
  assert.deepEqual([spans.length, collector.requests.length - before], [3, 3])
})
