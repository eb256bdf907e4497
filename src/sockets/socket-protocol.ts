import type { Work } from '../calls/ask.ts'
import type { Refusal } from '../kernel/errors.ts'
import type { Usage } from '../kernel/usage.ts'
import type { UsageReader } from '../providers/endpoint.ts'
import type { OpenTurn, ServerEvent } from './lanes.ts'
import type { TurnCall } from './turn-call.ts'

/** What a message of the client asks for. `check`: the models in it must be permitted before it passes. */
export type ClientIntent =
  | { readonly kind: 'pass'; readonly check: ModelCheck | null }
  | ({ readonly kind: 'begins'; readonly check: ModelCheck | null } & RequestedTurn)
  | RefusedIntent

export type RefusedIntent = { readonly kind: 'refused'; readonly refusal: Refusal } & RequestedTurn

export interface RequestedTurn {
  readonly lane: string
  /** The client's name for its message, which an error of upstream may repeat. */
  readonly tag: string | null
  readonly planned: Work
}

export interface ModelCheck {
  readonly planned: Work
  /** The refusal for limited keys; null: only the allowlist applies. */
  readonly limited: Refusal | null
  readonly tag: string | null
}

/** What the messages and events of an endpoint mean. */
export interface SocketProtocol {
  /** Reads the usage in the events of a turn; null: `usageOf` does. */
  readonly reader: UsageReader | null
  readClient(payload: Buffer): Promise<ClientIntent>
  /** The refusal of a message that cannot be read. */
  refused(detail: string): RefusedIntent
  readServer(payload: Buffer): ServerEvent
  /** The plan of a response that upstream begins by itself, and of the standing hold. */
  planUnrequested(): Work
  began(open: OpenTurn<TurnCall>): void
  /** The usage of a turn that ended, or was cut (`event` is null). Null: the events of the turn state it. */
  usageOf(open: OpenTurn<TurnCall>, event: ServerEvent | null): Usage | null
  /** A transcription that is billed as a separate call; null on sockets without transcriptions. */
  transcriptionOf(event: ServerEvent): { readonly planned: Work; readonly usage: Usage } | null
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
  /** Reads both sides again, as far as they can be processed. */
  resume(): void
}
