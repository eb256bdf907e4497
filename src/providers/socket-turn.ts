import type { Usage } from '../kernel/usage.ts'
import { NOT_READ } from '../metering/request-facts.ts'
import { CHARACTERS_PER_SECOND_MOST } from './chat/audio.ts'
import { findEndpoint } from './find-endpoint.ts'
import type { RequestLimits } from './request-limits.ts'
import { count, LIMITLESS } from './request-members.ts'
import { NO_REQUEST_TOOLS } from './request-tools.ts'
import { liveUsage, translationUsage } from './socket-usage.ts'

/** What is paid for on a socket whose messages are no requests. */
export type TurnKind = 'realtime' | 'transcription' | 'live' | 'translation'

/** What has to be known of a turn to say what it may cost. */
export interface SocketTurn {
  readonly kind: TurnKind
  /** Of the query string or the session; of a transcription, the one that the session names for it. */
  readonly model: string | null
  /** As the response or the session limits it; null for `inf` and for none, which is the limit of the model. */
  readonly outputTokensMax: number | null
  /** Of a translation: the models that may write down what is heard; null for one that is not known. */
  readonly transcribedBy?: readonly (string | null)[]
  readonly atMs: number
}

const TEMPLATES: Readonly<Record<TurnKind, string>> = {
  realtime: '/v1/realtime',
  transcription: '/v1/realtime',
  live: '/v1/live/sessions',
  translation: '/v1/realtime/translations',
}

/** A turn as if it were a request: what pricing asks of one, but for its model. */
export function turnRequest({ kind, atMs }: SocketTurn) {
  const path = TEMPLATES[kind]
  const endpoint = findEndpoint('chat', 'WS', path)
  return { surface: 'chat', method: 'WS', path, endpoint, facts: NOT_READ, bodyBytes: 0, atMs } as const
}

/** One stretch of speech is hardly ever longer; one that is is booked in full, as an overrun. */
const TRANSCRIBED_MS_MAX = 15 * 60_000

/** What is paid by the time while a session lasts is held for a minute at a time. */
export const ADVANCE_MS = 60_000

/**
 * What limits a turn: it may read all that the context window holds, since the conversation is kept upstream, and write as
 * much as it is allowed to. Sockets know no service tier.
 */
export function turnLimits({ kind, outputTokensMax }: SocketTurn): RequestLimits {
  return {
    // A limit of 0 is refused upstream, or taken for none.
    maxOutputTokens:
      kind === 'realtime' && outputTokensMax !== null ? count(outputTokensMax) || LIMITLESS : null,
    audioMsMax: kind === 'transcription' ? TRANSCRIBED_MS_MAX : ADVANCE_MS,
    predictedTokensMax: 0,
    prompts: 1,
    n: 1,
    serviceTier: 'default',
    speed: null,
    mayBeFast: false,
    geography: null,
    refersElsewhere: true,
    mayReferToAudio: false,
    compactsAbove: null,
    background: false,
    stored: false,
    tools: NO_REQUEST_TOOLS,
    fallbacks: [],
    unlimited: false,
  }
}

/** What is paid by the time has no bound: its hold is the price of what is used in advance. Null for other turns. */
export function advanceUsage(turn: SocketTurn): Usage | null {
  const { kind, model, transcribedBy = [] } = turn
  if (kind === 'live') return liveUsage(ADVANCE_MS / 1_000, 0, model)
  if (kind !== 'translation') return null
  const chars = Math.ceil((CHARACTERS_PER_SECOND_MOST * ADVANCE_MS) / 1_000)
  const most = { audioInMs: ADVANCE_MS, audioOutMs: ADVANCE_MS, heardChars: chars, writtenChars: chars }
  return translationUsage(most, model, transcribedBy)
}
