import type { Denial, Refusal } from '../../kernel/errors.ts'
import type { Message } from '../../sockets/message-reader.ts'

/** What becomes of a message of the client. */
export type Verdict =
  | {
      readonly kind: 'pass'
      /** Called when the message was forwarded. */
      readonly sent?: () => void
      /** Called when it will not be: the client or upstream is gone. */
      readonly unsent?: () => void
    }
  | {
      readonly kind: 'refused'
      readonly refusal: Refusal
      readonly about: RefusedTurn
      /** The socket closes with the refusal. */
      readonly closes?: true
    }
  /** The client has left before there was a verdict. */
  | { readonly kind: 'dropped' }

export interface RefusedTurn {
  readonly requestId: string
  /** The id of the lane, on sockets that have lanes. */
  readonly streamId: string | null
  /** The id of the client's message, on sockets whose messages have ids. */
  readonly eventId?: string | null
}

/** Why a handshake is not sent upstream. */
export type UnopenedHandshake = ({ readonly kind: 'refused' } & Denial) | { readonly kind: 'client_left' }

/** The socket, as far as its meter acts on it. */
export interface MeteredSocket {
  /** The client has left, or is being closed. */
  hasClientLeft(): boolean
  close(code: number, reason: string): void
  refuse(refusal: Refusal, about: RefusedTurn): void
  /** The key is not in force any more: the socket closes with the last turn. */
  revoked(): void
  /** A turn is over, or no longer expected to begin. */
  turnEnded(): void
}

/** Knows what the messages of one kind of socket mean: which of them begin turns, and what the turns have used. */
export interface SocketMeter {
  /** Turns under way. */
  readonly running: number
  /** Upstream may begin a turn that no message requests. */
  readonly upstreamStartsTurns: boolean
  /** Acquires the holds that the handshake needs before it goes upstream. Null: it may go. */
  open?(): Promise<UnopenedHandshake | null>
  start(socket: MeteredSocket): void
  /** Whether a message of the client may go upstream. Messages are judged one after the other. */
  judge(message: Message): Verdict | Promise<Verdict>
  /** Sees a message of upstream that has been passed on. */
  observe(payload: Buffer): void
  /** Upstream is not read. `isSlow`: because the client does not read. */
  paused(isPaused: boolean, isSlow: boolean): void
  /** How long upstream is read on when the client has left. */
  readOnMs(): number
  /** Nothing more is observed. `abandoned`: the gateway stops, and not upstream. Resolves when all turns are settled. */
  end(abandoned: boolean): Promise<void>
}

/** The verdict on a message that is refused. `eventId`: the id that the client gave it. */
export function refusedBy(
  { refusal, requestId }: { readonly refusal: Refusal; readonly requestId: string },
  eventId: string | null,
): Verdict {
  return { kind: 'refused', refusal, about: { requestId, streamId: null, eventId } }
}
