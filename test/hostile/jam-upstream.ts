import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { WELL } from './jam-watch.ts'

export interface JamUpstream {
  readonly url: string
  /** The number of calls that upstream holds back now. */
  readonly held: number
  readonly connections: number
  /** Bytes that no request asked for, written when the connection might belong to another call. */
  readonly lateBytes: number
  /** Answers all calls that are held back. */
  release(): void
  close(): Promise<void>
}

const USAGE = { input_tokens: 1_000, output_tokens: 200, service_tier: 'standard' }
const CHAT_USAGE = { prompt_tokens: 1_000, completion_tokens: 200, total_tokens: 1_200 }
const CHAT = { id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'gpt-6-luna' }

/** Bytes that another client would take for the answer to its call, if the connection became its own. */
const LATE = 'HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nstolen'

/**
 * Answers at once with the text of `x-text`, or as `x-do` says: `cut` gets the beginning of a stream and the rest when it
 * is released, `hold` nothing until then, other calls a short answer when their body is whole. The body of an answer to
 * HEAD comes with the next well-behaved call.
 */
export async function startJamUpstream(): Promise<JamUpstream> {
  const open = new Set<Socket>()
  let headed: Socket[] = []
  let held: (() => void)[] = []
  let begun: (() => void)[] = []
  let lateBytes = 0
  const server = createServer(async (req, res) => {
    req.on('error', () => {})
    res.on('error', () => {})
    req.resume()
    const how = req.headers['x-do']
    if (req.method === 'HEAD') {
      headed.push(res.socket as Socket)
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': LATE.length }).end()
      return
    }
    if (req.headers['x-jam'] === WELL) {
      for (const socket of headed) if (socket.writable && socket.write(LATE)) lateBytes += LATE.length
      headed = []
    }
    if (!req.complete) await once(req, 'end').catch(() => undefined)
    if (how === 'cut') {
      begin(req, res)
      begun.push(() => res.end(ending(isChat(req))))
    } else if (how === 'hold') held.push(() => answer(req, res))
    else answer(req, res)
  })
  server.on('connection', (socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get held() {
      return held.length
    },
    get connections() {
      return open.size
    },
    get lateBytes() {
      return lateBytes
    },
    release() {
      const all = [...held, ...begun]
      held = []
      begun = []
      for (const finish of all) finish()
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const isChat = (req: IncomingMessage) => req.url?.startsWith('/v1/chat') === true

/** The answer that a client gets that asked for this text. */
export function wholeAnswer(chat: boolean, text: string): object {
  if (chat) {
    const message = { role: 'assistant', content: text }
    return { ...CHAT, choices: [{ index: 0, message, finish_reason: 'stop' }], usage: CHAT_USAGE }
  }
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-haiku-5-5' }
  return { ...message, content: [{ type: 'text', text }], stop_reason: 'end_turn', usage: USAGE }
}

export function streamedAnswer(chat: boolean, text: string): string {
  return `${beginning(chat, text)}${ending(chat)}`
}

function beginning(chat: boolean, text: string): string {
  if (chat) {
    const choices = [{ index: 0, delta: { role: 'assistant', content: text }, finish_reason: null }]
    return `data: ${JSON.stringify({ ...CHAT, object: 'chat.completion.chunk', choices })}\n\n`
  }
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-haiku-5-5', content: [] }
  const delta = { type: 'text_delta', text }
  return (
    event({ type: 'message_start', message: { ...message, usage: USAGE } }) +
    event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }) +
    event({ type: 'content_block_delta', index: 0, delta })
  )
}

function ending(chat: boolean): string {
  if (chat) {
    const last = { ...CHAT, object: 'chat.completion.chunk', choices: [], usage: CHAT_USAGE }
    return `data: ${JSON.stringify(last)}\n\ndata: [DONE]\n\n`
  }
  const delta = { stop_reason: 'end_turn', stop_sequence: null }
  return (
    event({ type: 'content_block_stop', index: 0 }) +
    event({ type: 'message_delta', delta, usage: { output_tokens: 200 } }) +
    event({ type: 'message_stop' })
  )
}

const event = (data: { readonly type: string } & Record<string, unknown>) =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`

function begin(req: IncomingMessage, res: ServerResponse): void {
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  res.write(beginning(isChat(req), String(req.headers['x-text'] ?? 'cut')))
}

function answer(req: IncomingMessage, res: ServerResponse): void {
  const text = String(req.headers['x-text'] ?? 'done')
  if (req.headers['x-stream'] !== undefined) {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.write(beginning(isChat(req), text))
    setImmediate(() => res.end(ending(isChat(req))))
    return
  }
  res.writeHead(200, { 'content-type': 'application/json' })
  res.end(JSON.stringify(wholeAnswer(isChat(req), text)))
}
