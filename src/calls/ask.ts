import { limits } from '../kernel/limits.ts'
import { type Redact, redactEncoded, redactForeign } from '../kernel/secret.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import type { CallPlan } from './call-plan.ts'
import type { CountableInput } from './estimates.ts'

/** Who asks, whatever carries the request. */
export interface CallingKey {
  /** The digest of the key. */
  readonly digest: Buffer
  readonly clientIp: string
  readonly userAgent: string | null
  /** The client's own name of its session. */
  readonly sessionId: string | null
  readonly presence: Presence
  /** Removes secrets from everything about this call that is recorded. */
  readonly redact: Redact
}

/** Tells whether the client is still there. */
export interface Presence {
  readonly isOver: boolean
  readonly whenClosed: { add(left: () => void): void; remove(left: () => void): void }
}

/** The request, as far as it is known before its body is read. A refusal is recorded with these members. */
export interface Asked {
  readonly requestId: string
  readonly caller: CallingKey
  readonly surface: Surface
  readonly method: string
  readonly path: string
  /** Null: the path is in no table. */
  readonly endpoint: Endpoint | null
  /** Request id of the WebSocket handshake, on the handshake itself and on its turns; null for other calls. */
  readonly socketId: string | null
}

/** What a request wants done, apart from who wants it. */
export interface Work {
  readonly endpoint: Endpoint | null
  /** What decides the price of the request. */
  readonly profile: CallPlan
  /** What the request carried, from which input is estimated that upstream does not state. */
  readonly bytes: CountableInput
  /** Why the body cannot be read, or can be read in two ways. Limited keys are refused. */
  readonly ambiguity: string | null
}

/** What a carrier asks the core: may this go upstream? The answer is a hold or a refusal. */
export interface Ask extends Asked, Work {
  readonly endpoint: Endpoint | null
  /** A standing hold of a socket: no request, so the log shows it only after a turn has used it. */
  readonly isStanding?: boolean
}

/** Describes a request for its record, without secrets. */
export function describeAsked(asked: Asked, modelAsked: string | null) {
  const { requestId, caller, surface, socketId, method, path } = asked
  const { clientIp, userAgent, sessionId, redact } = caller
  return {
    requestId,
    method,
    surface,
    clientIp,
    socketId,
    path: recordable(path, redact),
    modelAsked: recordable(modelAsked, redact),
    userAgent: recordable(userAgent, redact),
    sessionId: recordable(sessionId, redact)?.slice(0, limits.sessionIdCharsMax) ?? null,
  }
}

export function recordable<T extends string | null>(text: T, redact: Redact): T
export function recordable(text: string | null, redact: Redact): string | null {
  if (text === null) return null
  return redactForeign(redactEncoded(text, redact)).slice(0, limits.recordedCharsMax)
}
