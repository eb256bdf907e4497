import type { Denial, Refusal } from '../../kernel/errors.ts'
import type { Message } from '../../sockets/message-reader.ts'

/** What becomes of a message of the client's. */
export type Verdict =
  | {
      readonly kind: 'pass'
      /** It was forwarded. */
      readonly sent?: () => void
      /** It will not be: the client or upstream is gone. */
      readonly unsent?: () => void
    }
  | {
      readonly kind: 'refused'
      readonly refusal: Refusal
      readonly about: RefusedTurn
      /** The socket closes with it. */
      readonly closes?: true
    }
  /** The client has left meanwhile. */
  | { readonly kind: 'dropped' }

export interface RefusedTurn {
  readonly requestId: string
  /** Of the lane that it was for. */
  readonly streamId: string | null
  /** Of the client's message, where messages have ids. */
  readonly eventId?: string | null
}

/** A handshake that does not go. */
export type Unopened = ({ readonly kind: 'refused' } & Denial) | { readonly kind: 'client_left' }

/** What a meter may have its socket do. */
export interface MeteredSocket {
  /** The client is gone, or is being told to go. */
  isLeft(): boolean
  close(code: number, reason: string): void
  refuse(refusal: Refusal, about: RefusedTurn): void
  /** The key is not in force any more: it closes with the last turn. */
  revoked(): void
  /** A turn is over, or will not begin. */
  turnEnded(): void
}

/** Knows what the messages of one kind of socket mean: which of them begin turns, and what these have used. */
export interface SocketMeter {
  /** Turns under way. */
  readonly running: number
  /** Upstream may begin a turn that no message asks for. */
  readonly beginsByItself: boolean
  /** Has what must be held before the handshake goes. Null: it may go. */
  open?(): Promise<Unopened | null>
  start(socket: MeteredSocket): void
  /** Whether a message of the client's may go. They come one after the other. */
  judge(message: Message): Verdict | Promise<Verdict>
  /** A message of upstream's, which has been passed on. */
  observe(payload: Buffer): void
  /** Upstream is not read. `isSlow`: because the client does not read. */
  paused(isPaused: boolean, isSlow: boolean): void
  /** How long upstream is worth reading now that the client is gone. */
  readOnMs(): number
  /** Nothing more is observed. `abandoned`: it was us who stopped. Resolves when all turns are settled. */
  end(abandoned: boolean): Promise<void>
}

/** A message of a session that is refused: `eventId` is the client's own of it. */
export function refusedBy(
  { refusal, requestId }: { readonly refusal: Refusal; readonly requestId: string },
  eventId: string | null,
): Verdict {
  return { kind: 'refused', refusal, about: { requestId, streamId: null, eventId } }
}
