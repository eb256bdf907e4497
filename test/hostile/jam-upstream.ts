import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { answerOf, bytesOf } from '../support/upstream-answer.ts'

/** The mark of a well-behaved call in its header, and a word in all its texts. */
export const WELL = 'well-behaved'

export interface JamUpstream {
  readonly url: string
  readonly held: number
  /** Unsolicited bytes, written when the connection might belong to another call. */
  readonly lateBytes: number
  release(): void
  close(): Promise<void>
}

/** Bytes that another client would read as its reply if the connection became its own. */
const LATE = 'HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nstolen'

/** `x-do`: `cut` gets half of a stream, `hold` nothing until the release; others get a short reply. */
export async function startJamUpstream(): Promise<JamUpstream> {
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
      begun.push(begin(req, res, String(req.headers['x-text'] ?? 'cut')))
    } else if (how === 'hold') held.push(() => answer(req, res))
    else answer(req, res)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get held() {
      return held.length
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

export function answerBytes(chat: boolean, streamed: boolean, text: string): string {
  return bytesOf(chat ? 'chat' : 'messages', streamed, text, OUTPUT_TOKENS)
}

const OUTPUT_TOKENS = 200
/** The chunks of a stream after the last words of its text. */
const LAST_PIECES = { messages: 3, chat: 2 }

function streamOf(req: IncomingMessage, text: string): readonly [beginning: string, ending: string] {
  const surface = isChat(req) ? 'chat' : 'messages'
  const { pieces } = answerOf(surface, true, text, OUTPUT_TOKENS)
  const last = pieces.length - LAST_PIECES[surface]
  return [pieces.slice(0, last).join(''), pieces.slice(last).join('')]
}

const EVENTS = { 'content-type': 'text/event-stream' }

function begin(req: IncomingMessage, res: ServerResponse, text: string): () => void {
  const [beginning, ending] = streamOf(req, text)
  res.writeHead(200, EVENTS).write(beginning)
  return () => res.end(ending)
}

function answer(req: IncomingMessage, res: ServerResponse): void {
  const text = String(req.headers['x-text'] ?? 'done')
  if (req.headers['x-stream'] !== undefined) return void setImmediate(begin(req, res, text))
  res.writeHead(200, { 'content-type': 'application/json' })
  res.end(answerBytes(isChat(req), false, text))
}
