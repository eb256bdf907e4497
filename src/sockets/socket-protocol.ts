import type { Work } from '../calls/ask.ts'
import type { Refusal } from '../kernel/errors.ts'
import type { Usage } from '../kernel/usage.ts'
import type { ReplyDocument } from '../metering/json-shape.ts'
import type { UsageReader } from '../providers/endpoint.ts'
import type { TurnCall } from './turn-call.ts'

export type ClientIntent =
  | { readonly kind: 'pass'; readonly check: ModelCheck | null }
  | ({ readonly kind: 'begins'; readonly check: ModelCheck | null } & RequestedTurn)
  | RefusedIntent

export type RefusedIntent = { readonly kind: 'refused'; readonly refusal: Refusal } & RequestedTurn

interface RequestedTurn {
  readonly lane: string
  readonly tag: string | null
  readonly planned: Work
}

/** Models in a message that must be on the key's allowlist before it passes. */
export interface ModelCheck {
  readonly planned: Work
  /** The refusal for limited keys; null: only the allowlist applies. */
  readonly limited: Refusal | null
  readonly tag: string | null
}

/** The tag of a turn that adds input to a running response. All waiting steers of a lane become one successor. */
export const STEER = 'response.steer'

export const NO_LANE = ''

export const OTHER_EVENT = {
  kind: 'other' as 'began' | 'part' | 'ended' | 'failed' | 'transcribed' | 'other',
  lane: NO_LANE as string,
  responseId: null as string | null,
  /** The client message that an error refers to; null if the event does not say. */
  tag: null as string | null,
  status: 400,
  usage: null as unknown,
  stopReason: null as string | null,
  itemId: null as string | null,
  /** The event, if its turn reads the usage in it. */
  document: null as ReplyDocument | null,
}

export type ServerEvent = Readonly<typeof OTHER_EVENT>

/** A turn from the moment its message was sent until it settles. */
export interface OpenTurn {
  readonly turn: TurnCall
  readonly lane: string
  readonly tag: string | null
  readonly sentMs: number
  /** Whether upstream began the turn after the key was revoked. */
  readonly isAfterRevocation: boolean
  responseId: string | null
  hasBegun: boolean
  /** Set when an error may have ended the turn, or the next response of its lane has begun. */
  likelyEnd: { readonly atMs: number; readonly event: ServerEvent } | null
}

export interface SocketProtocol {
  /** Reads the usage in the events of a turn; null: `usageOf` does. */
  readonly reader: UsageReader | null
  /** Whether upstream may begin turns. Such a socket has a standing hold. */
  readonly upstreamBegins: boolean
  readClient(payload: Buffer): Promise<ClientIntent>
  /** The refusal of a message that cannot be read. */
  refused(detail: string): RefusedIntent
  readServer(payload: Buffer): ServerEvent
  /** The plan of a response that upstream begins by itself, and of the standing hold. */
  planUnrequested(): Work
  began?(open: OpenTurn): void
  /** The usage of a turn that ended, or was cut (`event` is null). Null: the events of the turn state it. */
  usageOf(open: OpenTurn, event: ServerEvent | null): Usage | null
  /** A transcription that is billed as a separate call. */
  transcriptionOf?(event: ServerEvent): { readonly planned: Work; readonly usage: Usage }
}

export type Verdict =
  | {
      readonly kind: 'pass'
      readonly sent?: () => void
      /** Called if the message will never be sent, because the client or upstream is gone. */
      readonly unsent?: () => void
    }
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly about: RefusedTurn }
  | { readonly kind: 'dropped' }

export interface RefusedTurn {
  readonly requestId: string
  readonly lane: string
  readonly tag: string | null
}

export interface MeteredSocket {
  close(code: number, reason: string): void
  refuse(refusal: Refusal, about: RefusedTurn): void
  keyRevoked(): void
  /** A turn has ended, or will not begin. */
  turnEnded(): void
}
