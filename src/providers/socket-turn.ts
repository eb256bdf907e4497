import { NOT_READ } from '../metering/request-facts.ts'
import { findEndpoint } from './find-endpoint.ts'
import type { RequestLimits } from './request-limits.ts'
import { NO_REQUEST_TOOLS } from './request-tools.ts'

/** A turn of a Realtime session, or a transcription of its input: no request describes what it may cost. */
export interface SocketTurn {
  readonly kind: 'realtime' | 'transcription'
  readonly model: string | null
  readonly atMs: number
}

/** A turn as the request that pricing expects, but for its model. */
export function turnRequest({ atMs }: SocketTurn) {
  const path = '/v1/realtime'
  const endpoint = findEndpoint('chat', 'WS', path)
  return { surface: 'chat', method: 'WS', path, endpoint, facts: NOT_READ, bodyBytes: 0, atMs } as const
}

/** The audio that a standing hold covers. Speech is hardly ever longer without a pause; the rest is an overrun. */
const TRANSCRIBED_MS_MAX = 15 * 60_000

/** A turn may read a whole context window, since upstream keeps the conversation, and write as much as its model can. */
export const TURN_LIMITS: RequestLimits = {
  boundClass: 'elsewhere',
  maxOutputTokens: null,
  audioMsMax: TRANSCRIBED_MS_MAX,
  prompts: 1,
  n: 1,
  serviceTier: 'default',
  speed: null,
  mayBeFast: false,
  geography: null,
  refersElsewhere: true,
  compacts: false,
  background: false,
  stored: false,
  tools: NO_REQUEST_TOOLS,
  passes: 0,
  otherModels: [],
}
