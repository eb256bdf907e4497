import assert from 'node:assert/strict'
import { gzipSync } from 'node:zlib'
import { Agent, request } from 'undici'
import { withDeadline } from '../support/deadline.ts'
import { answerBytes, WELL } from './jam-upstream.ts'

/** A timeout that only a call which hangs forever reaches. */
const HANG_MS = 60_000

const KINDS = ['json', 'stream', 'chat json', 'chat stream', 'gzip', 'large', 'cut'] as const

/** A well-behaved key that calls all the time. Every call must get its own bytes. */
export class WellBehaved {
  calls = 0
  readonly tookMs: number[] = []
  readonly requestIds: string[] = []
  readonly #url: string
  readonly #key: string
  readonly #agent = new Agent({ connections: 1 })

  constructor(url: string, key: string) {
    this.#url = url
    this.#key = key
  }

  async round(): Promise<void> {
    for (const kind of KINDS) {
      const beganMs = performance.now()
      const name = `${WELL} ${kind} ${this.calls}`
      await withDeadline(this.#call(kind, name), () => `the ${name} has no answer`, HANG_MS)
      this.tookMs.push(performance.now() - beganMs)
      this.calls += 1
    }
  }

  async close(): Promise<void> {
    await this.#agent.close()
  }

  async #call(kind: (typeof KINDS)[number], text: string): Promise<void> {
    if (kind === 'cut') return await this.#leaveEarly()
    const chat = kind.startsWith('chat')
    const streamed = kind.endsWith('stream')
    const sent = await this.#send(chat, {
      streamed,
      headers: { 'x-text': text, ...(kind === 'gzip' ? { 'content-encoding': 'gzip' } : {}) },
      said: kind === 'large' ? `${WELL} `.repeat(20_000) : text,
      gzip: kind === 'gzip',
    })
    const got = await sent.body.text()
    assert.equal(sent.statusCode, 200, `${text}: ${got}`)
    assert.equal(got, answerBytes(chat, streamed, text), `${text} got another's bytes`)
  }

  /** A call that its client leaves: its tokens must be counted as without an attack. */
  async #leaveEarly(): Promise<void> {
    const text = `${WELL} words that were delivered`
    const left = new AbortController()
    const sent = await this.#send(true, {
      streamed: true,
      headers: { 'x-text': text, 'x-do': 'cut' },
      said: `${WELL} question`,
      left,
    })
    for await (const bytes of sent.body) {
      assert.ok(String(bytes).includes(text))
      break
    }
    left.abort()
    const id = String(sent.headers['x-svc-request-id'])
    const reply = await request(`${this.#url}/gateway/v1/requests/${id}`, {
      dispatcher: this.#agent,
      headers: { authorization: `Bearer ${this.#key}` },
    })
    const record = (await reply.body.json()) as Record<string, unknown>
    assert.equal(record['state'], 'settled', `${id} is not settled: ${JSON.stringify(record)}`)
  }

  async #send(chat: boolean, call: CallParts) {
    const messages = [{ role: 'user', content: call.said }]
    const body = JSON.stringify(
      chat
        ? { model: 'gpt-6-luna', max_completion_tokens: 256, messages, ...streamOptions(call.streamed) }
        : { model: 'claude-haiku-5-5', max_tokens: 256, messages, stream: call.streamed },
    )
    const sent = await request(`${this.#url}${chat ? '/v1/chat/completions' : '/v1/messages'}`, {
      dispatcher: this.#agent,
      method: 'POST',
      headers: {
        authorization: `Bearer ${this.#key}`,
        ...(chat ? {} : { 'anthropic-version': '2023-06-01' }),
        'content-type': 'application/json',
        'x-jam': WELL,
        ...(call.streamed ? { 'x-stream': '1' } : {}),
        ...call.headers,
      },
      body: call.gzip ? gzipSync(body) : body,
      ...(call.left === undefined ? {} : { signal: call.left.signal }),
    })
    this.requestIds.push(String(sent.headers['x-svc-request-id']))
    return sent
  }
}

interface CallParts {
  readonly streamed: boolean
  readonly headers: Readonly<Record<string, string>>
  readonly said: string
  readonly gzip?: boolean
  readonly left?: AbortController
}

const streamOptions = (streamed: boolean) =>
  streamed ? { stream: true, stream_options: { include_usage: true } } : {}
