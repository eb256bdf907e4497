import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { withDeadline } from '../support/deadline.ts'
import { answerOf, type CallSurface } from './upstream-answer.ts'

/** A call that has reached upstream and stays there until the test lets it go. */
export interface GatedCall {
  readonly name: string
  /** Sends the head and the first event of a stream. */
  begin(): void
  /** Sends the rest. */
  finish(): void
}

/** An upstream that notes every call, by its user agent, before it does anything else. */
export interface ClusterUpstream {
  readonly url: string
  /** The names of the calls that have come, in order. */
  readonly received: readonly string[]
  /** The next call with a name that begins with `gate` and that `next` has not returned yet. */
  next(): Promise<GatedCall>
  close(): Promise<void>
}

/** Answers with as many output tokens as the header `x-tokens` says, in steps that are `x-pace` ms apart. */
export async function startClusterUpstream(): Promise<ClusterUpstream> {
  const received: string[] = []
  const come: GatedCall[] = []
  let taken = 0
  let wake = Promise.withResolvers<void>()

  const server = createServer(async (req, res) => {
    // A node that starts asks for the models, to say whether upstream takes its key.
    if (req.method === 'GET') return void res.end('{"data":[]}')
    const name = req.headers['user-agent'] ?? ''
    received.push(name)
    // Nodes are killed in the middle of calls.
    req.on('error', () => {})
    res.on('error', () => {})
    const body = await readBody(req)
    if (body === null) return
    const parts = answerFor(req, body, name)
    if (!name.startsWith('gate')) return void (await send(res, parts, Number(req.headers['x-pace'] ?? 0)))
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
    const { promise: finished, resolve: finish } = Promise.withResolvers<void>()
    come.push({ name, begin, finish: () => [begin, finish].forEach((step) => void step()) })
    wake.resolve()
    wake = Promise.withResolvers()
    await begun
    writeHead(res, parts.type)
    res.write(parts.pieces[0] ?? '')
    await finished
    res.end(parts.pieces.slice(1).join(''))
  })
  server.keepAliveTimeout = 60_000
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
    received,
    next: () => withDeadline(take(taken++), () => `no call came; ${come.length} have`),
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** The body; null if the request broke off. */
async function readBody(req: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of req) chunks.push(chunk as Buffer)
  } catch {
    return null
  }
  return Buffer.concat(chunks).toString()
}

function answerFor(req: IncomingMessage, body: string, name: string) {
  const surface: CallSurface = req.url?.startsWith('/v1/messages') ? 'messages' : 'chat'
  const { stream = false } = JSON.parse(body) as { stream?: boolean }
  return answerOf(surface, stream, name, Number(req.headers['x-tokens'] ?? 0))
}

function writeHead(res: ServerResponse, type: string): void {
  res.writeHead(200, { 'content-type': type })
}

async function send(
  res: ServerResponse,
  { type, pieces }: ReturnType<typeof answerOf>,
  paceMs: number,
): Promise<void> {
  writeHead(res, type)
  for (const piece of pieces) {
    if (paceMs > 0) await sleep(paceMs)
    res.write(piece)
  }
  res.end()
}
