import type { Usage } from '../kernel/usage.ts'
import { NOT_READ } from '../metering/request-facts.ts'
import { CHARACTERS_PER_SECOND_MOST } from './chat/audio.ts'
import { findEndpoint } from './find-endpoint.ts'
import type { RequestLimits } from './request-limits.ts'
import { count, LIMITLESS } from './request-members.ts'
import { NO_REQUEST_TOOLS } from './request-tools.ts'
import { liveUsage, translationUsage } from './socket-usage.ts'

/** The kinds of turns on sockets whose messages are no requests. */
export type TurnKind = 'realtime' | 'transcription' | 'live' | 'translation'

/** A turn, as far as it decides what the turn may cost. */
export interface SocketTurn {
  readonly kind: TurnKind
  /** The model of the query string or the session; of a transcription, the one that the session names for it. */
  readonly model: string | null
  /** The limit of the response or the session; null for `inf` and for none, which is the limit of the model. */
  readonly outputTokensMax: number | null
  /** Of a translation: the models that may transcribe its input; null for one that is not known. */
  readonly transcribedBy?: readonly (string | null)[]
  readonly atMs: number
}

const TEMPLATES: Readonly<Record<TurnKind, string>> = {
  realtime: '/v1/realtime',
  transcription: '/v1/realtime',
  live: '/v1/live/sessions',
  translation: '/v1/realtime/translations',
}

/** A turn as the request that pricing expects, but for its model. */
export function turnRequest({ kind, atMs }: SocketTurn) {
  const path = TEMPLATES[kind]
  const endpoint = findEndpoint('chat', 'WS', path)
  return { surface: 'chat', method: 'WS', path, endpoint, facts: NOT_READ, bodyBytes: 0, atMs } as const
}

/** The length that a transcript is held for. Speech is hardly ever longer without a pause; if it is, the rest is an overrun. */
const TRANSCRIBED_MS_MAX = 15 * 60_000

/** Sessions that are paid by the time are held for a minute at a time. */
export const ADVANCE_MS = 60_000

/**
 * The limits of a turn. It may read a whole context window, since the conversation is kept upstream, and write as much as its
 * limit allows. Sockets have no service tiers.
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

/** The hold of a turn that is paid by the time, which has no bound: the price of the time that is held for. Null for other turns. */
export function advanceUsage(turn: SocketTurn): Usage | null {
  const { kind, model, transcribedBy = [] } = turn
  if (kind === 'live') return liveUsage(ADVANCE_MS / 1_000, 0, model)
  if (kind !== 'translation') return null
  const chars = Math.ceil((CHARACTERS_PER_SECOND_MOST * ADVANCE_MS) / 1_000)
  const most = { audioInMs: ADVANCE_MS, audioOutMs: ADVANCE_MS, heardChars: chars, writtenChars: chars }
  return translationUsage(most, model, transcribedBy)
}
