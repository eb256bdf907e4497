import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { withDeadline } from '../support/deadline.ts'

/** A call that has reached upstream and stays there until the test lets it go. */
export interface GatedCall {
  /** The name in the call's header `x-call`. */
  readonly name: string
  /** Sends the head and the first event of a stream. */
  begin(): void
  /** Answers with a whole message that used so many output tokens, at $0.50 per million. */
  finish(outputTokens: number): void
}

export interface GatedUpstream {
  readonly url: string
  /** The names of the calls that have come, in order. */
  readonly names: readonly string[]
  /** The next call that `next` has not returned yet. */
  next(): Promise<GatedCall>
  /** Ends every connection. */
  breakOff(): void
  close(): Promise<void>
}

const MODEL = { messages: 'claude-haiku-5-5', chat: 'gpt-6-luna' } as const

/**
 * Speaks as much of both surfaces as a bill needs. Free endpoints are answered at once, and so are calls with a name
 * such as `at once 200`, which use that many output tokens.
 */
export async function startGatedUpstream(): Promise<GatedUpstream> {
  const names: string[] = []
  const come: GatedCall[] = []
  let taken = 0
  let wake = Promise.withResolvers<void>()
  const server = createServer(async (req, res) => {
    req.resume()
    await once(req, 'end')
    if (req.method === 'GET') return void res.end('{}')
    const call = gatedCall(req, res)
    names.push(call.name)
    const atOnce = /^at once (\d+)/.exec(call.name)?.[1]
    if (atOnce !== undefined) return call.finish(Number(atOnce))
    come.push(call)
    wake.resolve()
    wake = Promise.withResolvers()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  async function take(place: number): Promise<GatedCall> {
    for (;;) {
      const call = come[place]
      if (call !== undefined) return call
      await wake.promise
    }
  }

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    names,
    next: () => withDeadline(take(taken++), () => `no call came; so far ${names.join(', ')}`),
    breakOff: () => server.closeAllConnections(),
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function gatedCall(req: IncomingMessage, res: ServerResponse): GatedCall {
  const surface = req.url?.startsWith('/v1/messages') ? 'messages' : 'chat'
  let begun = false
  return {
    name: String(req.headers['x-call'] ?? ''),
    begin() {
      begun = true
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write(event('message_start', { message: message(0) }))
    },
    finish(outputTokens) {
      if (begun) {
        const delta = { stop_reason: 'end_turn', stop_sequence: null }
        res.write(event('message_delta', { delta, usage: { output_tokens: outputTokens } }))
        res.end(event('message_stop', {}))
        return
      }
      res.writeHead(200, { 'content-type': 'application/json' })
      res.end(JSON.stringify(surface === 'messages' ? message(outputTokens) : completion(outputTokens)))
    },
  }
}

function event(type: string, more: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`
}

function message(outputTokens: number): object {
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: MODEL.messages,
    content: [],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 0, output_tokens: outputTokens },
  }
}

function completion(outputTokens: number): object {
  const message = { role: 'assistant', content: 'ok' }
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: MODEL.chat,
    choices: [{ index: 0, message, finish_reason: 'stop' }],
    usage: { prompt_tokens: 0, completion_tokens: outputTokens, total_tokens: outputTokens },
  }
}
