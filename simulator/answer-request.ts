import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Behaviours, parseBehaviours } from './behaviours.ts'
import type { Memory } from './call.ts'
import { chatErrorReply, chatFailures } from './chat/chat-error.ts'
import { checkKey } from './check-key.ts'
import { deterministicIdentity, fingerprintRequest, type Identity, uniqueIdentity } from './identity.ts'
import { messagesErrorReply, messagesFailures } from './messages/messages-error.ts'
import { type PaceMode, wait } from './pace.ts'
import { preflightReply } from './preflight.ts'
import { type BodyBudget, decodeBody, readBody } from './read-body.ts'
import { asRefusal, Refusal, type Surface } from './refusal.ts'
import type { Reply } from './reply.ts'
import { bodyBytesMaxOf, findRoute, judgeSurface } from './route.ts'
import type { WorkClock } from './work-clock.ts'
import { type Outcome, writeReply } from './write-reply.ts'

/** A request as upstream received it. */
export interface RequestEntry {
  readonly method: string
  /** The request target to the letter, query string included. */
  readonly path: string
  readonly headersRaw: readonly string[]
  readonly trailersRaw: readonly string[]
  /** The body as it was sent, before any decoding, as far as it was read. */
  readonly bodyBytes: Buffer
  /** False when the client left, or was refused, before the whole body had been read. */
  readonly isComplete: boolean
}

/** A message or the close of a socket after its handshake; `socket` is the handshake's position among all requests. */
export type SocketEntry = { readonly socket: number; readonly path: string } & (
  | { readonly kind: 'message'; readonly data: Buffer; readonly isBinary: boolean }
  | { readonly kind: 'close'; readonly code: number; readonly reason: string }
)

export interface Simulation {
  readonly messagesKey: string | undefined
  readonly chatKey: string | undefined
  readonly mode: PaceMode
  readonly isDeterministic: boolean
  readonly memory: Memory
  readonly clock: WorkClock
  readonly bodyBudget: BodyBudget
  readonly onRequest: ((entry: RequestEntry) => void) | undefined
  readonly onSocket: ((entry: SocketEntry) => void) | undefined
}

export interface Exchange {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  /** The position of this request among all. */
  readonly nth: number
  /** Aborted when the client has left. */
  readonly signal: AbortSignal
}

/** Answers a request, from its head to the end of the reply. `cut` means that the caller breaks the connection. */
export async function answerRequest(simulation: Simulation, exchange: Exchange): Promise<Outcome | 'reset'> {
  const { req, res, signal } = exchange
  const received = await receive(simulation, exchange)
  try {
    simulation.onRequest?.({
      method: req.method ?? 'GET',
      path: req.url ?? '/',
      headersRaw: req.rawHeaders,
      trailersRaw: req.rawTrailers,
      bodyBytes: received.body,
      isComplete: received.isComplete,
    })
    const { behaviours, surface, body } = received
    if (received.hasLeft) return 'left'
    await wait(behaviours.delayMs ?? 0, signal)
    if (signal.aborted) return 'left'
    if (behaviours.reset === true) return 'reset'

    const identity = identify(simulation, exchange, body)
    const reply = await decide(simulation, exchange, received, identity).catch((error: unknown) =>
      errorReply(error, surface, identity),
    )
    if (simulation.isDeterministic) res.sendDate = false
    const acceptEncoding = req.headersDistinct['accept-encoding']?.join(',')
    const headers = [...reply.headers, ...corsHeaders(req), ...dateHeaders(simulation, identity)]
    return await writeReply(
      { res, behaviours, mode: simulation.mode, acceptEncoding, signal },
      { ...reply, headers },
    )
  } finally {
    simulation.bodyBudget.bytes -= received.body.length
  }
}

interface Received {
  readonly surface: Surface
  readonly behaviours: Behaviours
  readonly body: Buffer
  readonly isComplete: boolean
  readonly hasLeft: boolean
  /** Why the request is not looked at any further. */
  readonly refusal: Refusal | undefined
}

/** Judges the head, and reads the body if the head is in order. */
async function receive(simulation: Simulation, exchange: Exchange): Promise<Received> {
  const { req, res } = exchange
  const surface = judgeSurface(pathOf(req), req.headers)
  const nothing = { surface, behaviours: {}, body: Buffer.alloc(0), isComplete: false, hasLeft: false }
  // A preflight carries no key, and its body, if any, means nothing.
  if (req.method === 'OPTIONS') return { ...nothing, isComplete: true, refusal: undefined }
  let behaviours: Behaviours = {}
  try {
    checkKey(surface, req.headers, surface === 'messages' ? simulation.messagesKey : simulation.chatKey)
    behaviours = chooseBehaviours(req)
  } catch (error) {
    if (error instanceof Refusal) return { ...nothing, refusal: error }
    throw error
  }
  if (behaviours.early === true) {
    return { ...nothing, behaviours, refusal: failureOf(surface, behaviours.status ?? 413) }
  }
  if (req.headers.expect !== undefined) res.writeContinue()
  const bytesMax = bodyBytesMaxOf(surface, req.headers['content-type'] ?? '')
  const read = await readBody(req, bytesMax, simulation.bodyBudget)
  return {
    surface,
    behaviours,
    body: read.bytes,
    isComplete: read.kind === 'complete',
    hasLeft: read.kind === 'left',
    refusal: read.kind === 'refused' ? read.refusal : undefined,
  }
}

async function decide(
  simulation: Simulation,
  { req }: Exchange,
  received: Received,
  identity: Identity,
): Promise<Reply> {
  const { surface, behaviours } = received
  const method = req.method ?? 'GET'
  const path = pathOf(req)
  if (received.refusal !== undefined) throw received.refusal
  if (method === 'OPTIONS') return preflightReply(req.headers)
  if (behaviours.status !== undefined) throw failureOf(surface, behaviours.status)
  const { handle, params } = findRoute(surface, method, path)
  return handle({
    method,
    path,
    query: new URLSearchParams((req.url ?? '').slice(path.length + 1)),
    headers: req.headers,
    contentType: req.headers['content-type'] ?? '',
    body: await decodeBody(received.body, req.headers['content-encoding']),
    params,
    behaviours,
    identity,
    memory: simulation.memory,
    clock: simulation.clock,
  })
}

export function pathOf(req: IncomingMessage): string {
  return (req.url ?? '/').split('?', 1)[0] ?? '/'
}

function identify(simulation: Simulation, { req }: Exchange, body: Buffer): Identity {
  if (!simulation.isDeterministic) return uniqueIdentity()
  return deterministicIdentity(
    fingerprintRequest({
      method: req.method ?? 'GET',
      target: req.url ?? '/',
      behaviours: behaviourHeader(req),
      contentType: req.headers['content-type'] ?? '',
      body,
    }),
  )
}

export function behaviourHeader(req: IncomingMessage): string {
  return (req.headersDistinct['x-simulator'] ?? []).join(';')
}

/** The behaviours that the request asks for. */
export function chooseBehaviours(req: IncomingMessage): Behaviours {
  const parsed = parseBehaviours(behaviourHeader(req))
  if (parsed.ok) return parsed.behaviours
  throw new Refusal(400, parsed.problem)
}

/** The failure with that status, in the words of the surface's upstream. */
export function failureOf(surface: Surface, status: number): Refusal {
  if (surface === 'messages') {
    return new Refusal(status, messagesFailures.get(status) ?? 'Internal server error')
  }
  const failure = chatFailures.get(status) ?? chatFailures.get(503)
  return new Refusal(status, failure?.message ?? 'Internal server error', {
    type: failure?.type ?? 'server_error',
    code: failure?.code ?? null,
  })
}

export function errorReply(error: unknown, surface: Surface, identity: Identity): Reply {
  const refusal = asRefusal(error)
  return surface === 'messages' ? messagesErrorReply(refusal, identity) : chatErrorReply(refusal, identity)
}

function corsHeaders(req: IncomingMessage): [string, string][] {
  const isPreflight = req.method === 'OPTIONS'
  return req.headers.origin === undefined || isPreflight ? [] : [['access-control-allow-origin', '*']]
}

/** A deterministic reply may not carry the time of day. */
function dateHeaders(simulation: Simulation, identity: Identity): [string, string][] {
  return simulation.isDeterministic ? [['date', identity.now().toUTCString()]] : []
}
