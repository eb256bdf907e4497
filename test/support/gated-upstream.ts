import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { withDeadline } from './deadline.ts'
import { answerOf } from './upstream-answer.ts'

export interface GatedCall {
  readonly name: string
  /** Sends the head and the first event of a stream. */
  begin(): void
  /** Sends the rest with this many output tokens; by default as many as the call requests. */
  finish(outputTokens?: number): void
}

export interface GatedUpstream {
  readonly url: string
  readonly names: readonly string[]
  /** The next gated call that `next` has not returned yet. */
  next(): Promise<GatedCall>
  breakOff(): void
  close(): Promise<void>
}

interface GatedOptions {
  /** The header with the name of a call. */
  readonly header: 'x-call' | 'user-agent'
  readonly gates: RegExp
}

/** Ungated calls use as many output tokens as `x-tokens` or their name says, in steps of `x-pace` ms. */
export async function startGatedUpstream({ header, gates }: GatedOptions): Promise<GatedUpstream> {
  const names: string[] = []
  const come: GatedCall[] = []
  let taken = 0
  let wake = Promise.withResolvers<void>()
  const server = createServer(async (req, res) => {
    // Nodes are killed and clients leave mid-call.
    req.on('error', () => {})
    res.on('error', () => {})
    // A starting node requests the models, to check upstream's key.
    if (req.method === 'GET') return void req.resume().once('end', () => res.end('{"data":[]}'))
    const name = String(req.headers[header] ?? '')
    names.push(name)
    const body = await readBody(req)
    if (body === null) return
    const tokens = Number(req.headers['x-tokens'] ?? /^at once (\d+)/.exec(name)?.[1] ?? 0)
    const call = gatedCall(req, res, body, name, tokens)
    if (!gates.test(name)) return void (await call.send(Number(req.headers['x-pace'] ?? 0)))
    come.push(call)
    wake.resolve()
    wake = Promise.withResolvers()
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
    names,
    next: () => withDeadline(take(taken++), () => `no call came; so far ${names.join(', ')}`),
    breakOff: () => server.closeAllConnections(),
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** The body; null if the request broke. */
async function readBody(req: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of req) chunks.push(chunk as Buffer)
  } catch {
    return null
  }
  return Buffer.concat(chunks).toString()
}

function gatedCall(req: IncomingMessage, res: ServerResponse, body: string, name: string, tokens: number) {
  const surface = req.url?.startsWith('/v1/messages') ? 'messages' : 'chat'
  const stream = /"stream":\s*true/.test(body)
  const answer = (outputTokens: number) => answerOf(surface, stream, name, outputTokens)
  let begun = false
  const begin = (): void => {
    if (begun) return
    begun = true
    const { type, pieces } = answer(tokens)
    res.writeHead(200, { 'content-type': type })
    if (stream) res.write(pieces[0] ?? '')
  }
  return {
    name,
    begin,
    finish(outputTokens = tokens) {
      begin()
      const { pieces } = answer(outputTokens)
      res.end(pieces.slice(stream ? 1 : 0).join(''))
    },
    async send(paceMs: number) {
      const { type, pieces } = answer(tokens)
      res.writeHead(200, { 'content-type': type })
      for (const piece of pieces) {
        if (paceMs > 0) await sleep(paceMs)
        res.write(piece)
      }
      res.end()
    },
  }
}
