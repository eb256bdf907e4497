import { withDeadline } from '../support/deadline.ts'
import type { GatewayOptions } from '../support/gateway.ts'
import { connect, type RawConnection } from '../support/raw-client.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import type { ReceivedRequest, Step } from '../support/upstream-script.ts'
import { chunk, message, sized } from '../support/wire-bytes.ts'
import { startBillingBench } from './bench-of-one.ts'

export const never = new Promise<never>(() => {})
export const streamHead = message('HTTP/1.1 200 OK', [
  'Content-Type: text/event-stream',
  'Transfer-Encoding: chunked',
])
export const event = (data: Record<string, unknown>): Step => ({
  send: chunk(`event: ${String(data['type'] ?? 'message')}\ndata: ${JSON.stringify(data)}\n\n`),
})
export const json = (body: unknown): Step => ({
  send: sized('HTTP/1.1 200 OK', ['Content-Type: application/json'], JSON.stringify(body)),
})

export const hi = [{ role: 'user', content: 'hi' }]
export const usd = (record: Record<string, unknown>): number => Number(record['cost_usd'])

export const created = (more: Record<string, unknown> = {}): Step =>
  event({
    type: 'response.created',
    response: {
      id: 'resp_1',
      object: 'response',
      model: 'gpt-5',
      status: 'in_progress',
      usage: null,
      ...more,
    },
  })
export const completed = (usage: Record<string, unknown>, more: Record<string, unknown> = {}): Step =>
  event({
    type: 'response.completed',
    response: { id: 'resp_1', model: 'gpt-5', status: 'completed', usage, output: [], ...more },
  })
export const delta = (text: string): Step =>
  event({ type: 'response.output_text.delta', output_index: 0, delta: text })
export const partialImage = event({
  type: 'image_generation.partial_image',
  b64_json: 'x'.repeat(2_000),
  partial_image_index: 2,
})

export interface LeftCall {
  readonly client: RawConnection
  readonly received: ReceivedRequest
  record(): Promise<Record<string, unknown>>
}

export async function startCutBench(options: GatewayOptions = {}) {
  let steppedMs = 0
  const clock = { nowMs: () => Date.now(), monotonicMs: () => performance.now() + steppedMs }
  const upstream = await ScriptedUpstream.start()
  const bench = await startBillingBench({ ...upstream.urls, clock, ...options })
  let calls = 0

  /** Starts a call that upstream answers with these steps; resolves with its connection while it runs. */
  async function begin(path: string, body: unknown, steps: readonly Step[]): Promise<LeftCall> {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const agent = `leaver-${++calls}`
    const client = await connect(bench.gateway)
    upstream.queue(steps)
    const arrival = upstream.nextRequest()
    const lines = [
      `POST ${path} HTTP/1.1`,
      'Host: gateway',
      `x-api-key: ${bench.gateway.apiKey}`,
      ...(path === '/v1/messages' ? ['anthropic-version: 2023-06-01'] : []),
      `User-Agent: ${agent}`,
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(text)}`,
    ]
    await client.send(Buffer.from(`${lines.join('\r\n')}\r\n\r\n${text}`))
    client.read({ method: 'POST' }).catch(() => undefined)
    return {
      client,
      received: await arrival,
      async record() {
        const list = await bench.gateway.manage('GET', '/gateway/v1/requests?limit=10')
        const found = (list['data'] as Record<string, unknown>[]).find((each) => each['user_agent'] === agent)
        return await bench.record(String(found?.['id']))
      },
    }
  }

  return {
    ...bench,
    upstream,
    step(ms: number) {
      steppedMs += ms
    },
    begin,
    /** Starts a stream whose client leaves after `mark`; then upstream continues with `rest`. */
    async leaveAt(mark: string, path: string, body: unknown, before: readonly Step[], rest: readonly Step[]) {
      const left = Promise.withResolvers<void>()
      const steps = [{ send: streamHead }, ...before, { pause: left.promise }, ...rest]
      const call = await begin(path, body, steps)
      await call.client.received(mark)
      call.client.leave()
      await call.client.closed()
      left.resolve()
      return call
    },
    async close() {
      await bench.close()
      await upstream.close()
    },
  }
}

/** Resolves when upstream has seen that the gateway disconnected. */
export async function upstreamNoticed({ received }: LeftCall): Promise<void> {
  await withDeadline(received.whenPeerClosed, () => 'upstream did not notice')
}
