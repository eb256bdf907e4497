import type { JsonMember } from '../metering/json-scan.ts'
import type { RequestFacts, RequestMember } from '../metering/request-facts.ts'
import type { UsageReader } from './endpoint.ts'
import { imageTokens } from './image-tokens.ts'
import type { RequestLimits } from './request-limits.ts'

/**
 * What of a call's work its reply does not show as it goes. It decides whether a call is read to its end after its
 * client has left, and what is charged if that cannot be.
 */
export interface UnseenWork {
  /** Images or audio are being made, and only their end says what they took. */
  readonly media: boolean
  /** The context is stored upstream or referred to, so that its tokens cannot be counted in the request. */
  readonly context: boolean
  /** What goes before may be summed up first, which is paid for apart from the answer. */
  readonly compaction: boolean
  /** Tools that upstream runs were declared. */
  readonly tools: boolean
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

/** Families of models that never reason: everything before gpt-5 but for the o-series, and the chat models since. */
const NEVER_REASONS =
  /^(?:ft:)?(?:gpt-(?:3|4)|chatgpt-4o|(?:gpt-)?chat-latest|gpt-5(?:\.\d+)?-chat|gpt-audio|babbage|davinci)/

export const NOTHING_UNSEEN: UnseenWork = {
  media: false,
  context: false,
  compaction: false,
  tools: false,
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
  bodyBytes: number,
): UnseenWork {
  if (reader === null) return NOTHING_UNSEEN
  const get = (name: RequestMember): JsonMember | undefined =>
    facts.kind === 'json' ? facts.scan.members.get(name) : undefined
  const store = get('store')
  const { compactsAbove } = limits
  return {
    media:
      reader === 'images' || reader === 'speech' || (reader === 'chat' && mentionsAudio(get('modalities'))),
    context: limits.refersElsewhere,
    compaction: compactsAbove !== null && (limits.refersElsewhere || bodyBytes > compactsAbove),
    tools: limits.tools.usesMax !== 0,
    reasoning: mayReason(reader, get, model),
    stored: reader === 'responses' && !(store?.kind === 'boolean' && !store.value),
    request: facts.kind === 'unreadable',
    imageTokens: () => imageTokens(facts),
    images: limits.n,
  }
}

function mentionsAudio(modalities: JsonMember | undefined): boolean {
  if (modalities === undefined || modalities.kind === 'null') return false
  return modalities.kind !== 'array' || /audio|\\/.test(modalities.json)
}

/**
 * On the Messages surface thinking is asked for (and where a model thinks unasked, its blocks show that it does). On
 * the Chat surface the model decides, and a request can turn it off.
 */
function mayReason(
  reader: UsageReader,
  get: (name: RequestMember) => JsonMember | undefined,
  model: string | null,
): boolean {
  if (reader === 'messages') {
    const thinking = get('thinking')
    if (thinking === undefined || thinking.kind === 'null') return false
    return thinking.kind !== 'object' || !/"type"\s*:\s*"disabled"/.test(thinking.json)
  }
  if (reader !== 'chat' && reader !== 'responses') return false
  if (model !== null && NEVER_REASONS.test(model)) return false
  const effort = get('reasoning_effort')
  if (reader === 'chat') return !(effort?.kind === 'string' && effort.value === 'none')
  const reasoning = get('reasoning')
  return !(reasoning?.kind === 'object' && /"effort"\s*:\s*"none"/.test(reasoning.json))
}
