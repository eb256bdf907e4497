import type { RequestFacts } from '../metering/request-facts.ts'
import { imageTokens } from './chat/images.ts'
import type { UsageReader } from './endpoint.ts'
import { type RequestLimits, refersElsewhere } from './request-limits.ts'
import { READERS } from './surfaces.ts'

/**
 * The work of a call that its reply does not show as it goes. Unseen work decides whether a call is read to its end after
 * its client has left, and what is charged if the call cannot be read to its end.
 */
export interface UnseenWork {
  /** Images or audio are being made, and only the end of the reply says how much they used. */
  readonly media: boolean
  /** The context is stored upstream or referred to, so that its tokens cannot be counted in the request. */
  readonly context: boolean
  /** The stored response that the request continues. */
  readonly continues: string | null
  /** The request asks for a stream. */
  readonly streams: boolean
  /** The model may reason without showing all of it. */
  readonly reasoning: boolean
  /** Upstream keeps the response and can be asked for it. */
  readonly stored: boolean
  /** The body could not be read, so nothing of the request is known. */
  readonly request: boolean
  /** Output tokens of one image, by the size and quality that the request asks for. */
  imageTokens(): number
  /** How many images an images endpoint was asked for. */
  readonly images: number
}

export const NOTHING_UNSEEN: UnseenWork = {
  media: false,
  context: false,
  continues: null,
  streams: false,
  reasoning: false,
  stored: false,
  request: false,
  images: 0,
  imageTokens: () => 0,
}

export function unseenWork(
  reader: UsageReader | null,
  facts: RequestFacts,
  limits: RequestLimits,
  model: string | null,
): UnseenWork {
  if (reader === null) return NOTHING_UNSEEN
  const { body } = facts
  const spec = READERS[reader]
  const { previous_response_id: previous } = body
  return {
    media: spec?.makesMedia?.(body) ?? false,
    context: refersElsewhere(reader, facts),
    continues: typeof previous === 'string' ? previous : null,
    streams: body['stream'] === true,
    reasoning: spec?.mayReason?.(body, model) ?? false,
    stored: spec?.stored === true && body['store'] !== false,
    request: facts.kind === 'unreadable',
    imageTokens: () => imageTokens(facts),
    images: limits.n,
  }
}
