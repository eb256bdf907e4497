import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Behaviours, parseBehaviours } from './behaviours.ts'
import { chatErrorJson, chatFailure, chatHeaders, newChatRequestId } from './chat/chat-wire.ts'
import { deterministicIdentity, fingerprintRequest, type Identity, uniqueIdentity } from './identity.ts'
import type { Memory } from './memory.ts'
import {
  messagesErrorJson,
  messagesFailure,
  messagesHeaders,
  newMessagesRequestId,
} from './messages/messages-wire.ts'
import { type PaceMode, type WorkClock, wait } from './pace.ts'
import { decodeBody, readBody } from './read-body.ts'
import { asRefusal, Refusal, type Surface } from './refusal.ts'
import { bytesReply, type Header, jsonReply, type Reply } from './reply.ts'
import { findRoute, judgeSurface } from './route.ts'
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
  readonly onRequest: ((entry: RequestEntry) => void) | undefined
  readonly onSocket: ((entry: SocketEntry) => void) | undefined
}

/** Answers a request, from its head to the end of the reply. The caller breaks the connection after `cut` and `reset`. */
export async function answerRequest(
  simulation: Simulation,
  req: IncomingMessage,
  res: ServerResponse,
  signal: AbortSignal,
): Promise<Outcome | 'reset'> {
  const surface = judgeSurface(pathOf(req), req.headers)
  let behaviours: Behaviours = {}
  let read: Awaited<ReturnType<typeof readBody>> = { bytes: Buffer.alloc(0), end: 'complete' }
  try {
    // A preflight carries no key, and its body, if any, means nothing.
    if (req.method !== 'OPTIONS') {
      checkKey(surface, req.headers, simulation)
      behaviours = behavioursOf(req)
      if (behaviours.early === true) throw failureOf(surface, behaviours.status ?? 413)
      if (req.headers.expect !== undefined) res.writeContinue()
      read = await readBody(req)
    }
  } catch (error) {
    read = { ...read, end: asRefusal(error) }
  }
  const { bytes: body, end } = read
  report(simulation, req, body, end === 'complete')
  if (end === 'left') return 'left'
  await wait(behaviours.delayMs ?? 0, signal)
  if (signal.aborted) return 'left'
  if (behaviours.reset === true) return 'reset'

  const identity = identify(simulation, req, body)
  const requestId = surface === 'messages' ? newMessagesRequestId(identity) : newChatRequestId(identity)
  const decide = async (): Promise<Reply> => {
    if (end !== 'complete') throw end
    if (req.method === 'OPTIONS') return preflightReply(req)
    if (behaviours.status !== undefined) throw failureOf(surface, behaviours.status)
    const path = pathOf(req)
    const { handle, param } = findRoute(surface, req.method ?? 'GET', path)
    return handle({
      query: new URLSearchParams((req.url ?? '').slice(path.length + 1)),
      headers: req.headers,
      body: await decodeBody(body, req.headers['content-encoding']),
      param,
      behaviours,
      identity,
      requestId,
      memory: simulation.memory,
      clock: simulation.clock,
    })
  }
  const reply = await decide().catch((error: unknown) => errorReply(surface, asRefusal(error), requestId))
  const headers: Header[] = [...reply.headers]
  if (surface === 'messages') headers.push(...messagesHeaders(identity, requestId, reply.status))
  else headers.push(...chatHeaders(requestId, reply.status))
  headers.push(['server', 'simulator'])
  if (req.headers.origin !== undefined) headers.push(['access-control-allow-origin', '*'])
  if (simulation.isDeterministic) {
    res.sendDate = false
    headers.push(['date', identity.now().toUTCString()])
  }
  return await writeReply({ res, behaviours, mode: simulation.mode, signal }, { ...reply, headers })
}

export function report(simulation: Simulation, req: IncomingMessage, bodyBytes: Buffer, isComplete: boolean) {
  simulation.onRequest?.({
    method: req.method ?? 'GET',
    path: req.url ?? '/',
    headersRaw: req.rawHeaders,
    trailersRaw: req.rawTrailers,
    bodyBytes,
    isComplete,
  })
}

/** Refuses a request without the provider's key. Without a configured key any request is accepted. */
export function checkKey(
  surface: Surface,
  headers: IncomingMessage['headers'],
  { messagesKey, chatKey }: Simulation,
): void {
  const key = surface === 'messages' ? messagesKey : chatKey
  const bearer = /^Bearer\s+(.*)$/i.exec(headers.authorization ?? '')?.[1]
  const given = surface === 'messages' ? (headers['x-api-key'] ?? bearer) : bearer
  if (key !== undefined && given !== key) throw failureOf(surface, 401)
}

export function pathOf(req: IncomingMessage): string {
  return (req.url ?? '/').split('?', 1)[0] ?? '/'
}

export function identify(simulation: Simulation, req: IncomingMessage, body: Uint8Array): Identity {
  if (!simulation.isDeterministic) return uniqueIdentity()
  const contentType = req.headers['content-type'] ?? ''
  const [method, target] = [req.method ?? 'GET', req.url ?? '/']
  return deterministicIdentity(
    fingerprintRequest({ method, target, behaviours: behaviourHeader(req), contentType, body }),
  )
}

function behaviourHeader(req: IncomingMessage): string {
  return (req.headersDistinct['x-simulator'] ?? []).join(';')
}

export function behavioursOf(req: IncomingMessage): Behaviours {
  const { behaviours, problem } = parseBehaviours(behaviourHeader(req))
  if (problem !== undefined) throw new Refusal(400, problem)
  return behaviours
}

/** The failure with that status, in the words of the surface's upstream. */
export function failureOf(surface: Surface, status: number): Refusal {
  return surface === 'messages'
    ? new Refusal(status, messagesFailure(status))
    : new Refusal(status, ...chatFailure(status))
}

export function errorReply(surface: Surface, refusal: Refusal, requestId: string): Reply {
  const isMessages = surface === 'messages'
  const json = isMessages ? messagesErrorJson(refusal, requestId) : { error: chatErrorJson(refusal) }
  return jsonReply(json, {}, refusal.status)
}

function preflightReply(req: IncomingMessage): Reply {
  const asked = req.headers['access-control-request-headers']
  return bytesReply('text/plain', Buffer.alloc(0), {}, 200, [
    ['access-control-allow-methods', 'GET, POST, DELETE, OPTIONS'],
    ['access-control-allow-headers', typeof asked === 'string' ? asked : '*'],
  ])
}
