import { isObject, type JsonObject, UNREAD } from '../metering/json-shape.ts'
import { MARKS } from '../metering/json-tokens.ts'
import type { RequestFacts } from '../metering/request-facts.ts'
import { spokenCharacters } from './chat/audio.ts'
import { imageTokens } from './chat/images.ts'
import type { Endpoint, UsageReader } from './endpoint.ts'
import { asksForSvg } from './named-models.ts'
import {
  asLimit,
  asWord,
  isGiven,
  LIMITLESS,
  listOf,
  type RequestTools,
  readTools,
  typeOf,
  USES_WITHOUT_LIMIT,
} from './request-members.ts'
import { READERS, SURFACES } from './surfaces.ts'

/**
 * What bounds the cost of a request. If several classes apply, the last one of this list counts.
 * - `plain`: the bytes of the body, and the output limit.
 * - `elsewhere`: the context window and the output limit, because the request refers to content outside of it, or
 *   contains images, documents or audio.
 * - `multiPass`: as `elsewhere`, for each pass that upstream may run for tools, fallbacks, advisors or compaction.
 * - `unknown`: nothing, because part of the request has no limit or cannot be read.
 */
export type BoundClass = 'plain' | 'elsewhere' | 'multiPass' | 'unknown'

export interface RequestLimits {
  readonly boundClass: BoundClass
  /** The largest output limit that the request states; null if it states none and the model's limit applies. */
  readonly maxOutputTokens: number | null
  /** Maximum length of audio that is priced by length, if the body size does not bound it. */
  readonly audioMsMax?: number
  /** Characters of the text of a speech request; null if the text is not read, or for other requests. */
  readonly characters?: number | null
  /** Number of prompts, and of answers to all prompts together. */
  readonly prompts: number
  readonly n: number
  readonly serviceTier: string | null
  readonly speed: string | null
  readonly mayBeFast: boolean
  readonly geography: string | null
  readonly refersElsewhere: boolean
  readonly compacts: boolean
  readonly background: boolean
  /** Whether the request uses a stored prompt, response or conversation, which may set another model. */
  readonly stored: boolean
  readonly tools: RequestTools
  /** The passes that upstream may run after the first: tool uses and fallbacks. */
  readonly passes: number
  readonly otherModels: readonly string[]
}

export function readLimits(endpoint: Endpoint, facts: RequestFacts): RequestLimits {
  const { body, items, kind, others } = facts
  const usage = endpoint.billing === 'metered' ? endpoint.usage : null
  const callsMax = usage === 'responses' ? asLimit(body['max_tool_calls']) : LIMITLESS
  const tools = readTools(
    SURFACES[endpoint.surface].tools,
    facts.tools,
    callsMax === LIMITLESS || callsMax === 0 ? null : callsMax,
  )
  const fallbacks = listOf(body['fallbacks']) ?? []
  const uses = tools.uses + USES_WITHOUT_LIMIT * loopsWithoutLimit(facts)
  const passes = uses + fallbacks.length
  const compacts = items.compacts || isGiven(body['compaction']) || asksToCompact(body['context_management'])
  const prompts = promptsOf(usage, body['prompt'])
  const elsewhere = refersElsewhere(usage, facts)
  const isUnknown =
    kind === 'unreadable' ||
    // Form fields are ignored if the endpoint reads JSON.
    (kind === 'form' && endpoint.reads !== 'multipart') ||
    others.unknown !== null ||
    items.unknown !== null ||
    (SURFACES[endpoint.surface].toolsInConversation && (facts.marks & MARKS.tool) !== 0) ||
    (usage === 'completions' && body['prompt'] === UNREAD) ||
    hasUnboundedMedia(body)
  const isMultiPass = passes > 0 || compacts || others.names.length > 0
  const limits: RequestLimits = {
    boundClass: isUnknown ? 'unknown' : isMultiPass ? 'multiPass' : elsewhere ? 'elsewhere' : 'plain',
    maxOutputTokens: outputLimit(usage, body, fallbacks),
    prompts,
    characters: usage === 'speech' ? spokenCharacters(facts) : null,
    n: prompts * answersOf(body),
    serviceTier: asWord(body['service_tier']),
    speed: asWord(body['speed']),
    mayBeFast: isFast(body['speed']) || fallbacks.some((entry) => isObject(entry) && isFast(entry['speed'])),
    geography: asWord(body['inference_geo']),
    refersElsewhere: elsewhere || isMultiPass,
    compacts,
    background: body['background'] === true,
    stored: namesStored(body),
    tools,
    passes,
    otherModels: others.names,
  }
  return usage === 'chat' && isGiven(body['web_search_options']) ? withSearch(limits) : limits
}

/** The limits of a chat with web search: one paid search, whose results the model reads. */
export function withSearch(limits: RequestLimits): RequestLimits {
  const { boundClass, tools } = limits
  return {
    ...limits,
    boundClass: boundClass === 'plain' ? 'elsewhere' : boundClass,
    refersElsewhere: true,
    tools: { ...tools, webSearches: Math.max(1, tools.webSearches) },
  }
}

/** The loops that upstream runs besides those of declared tools: MCP servers, agents, pro mode, tools in input items. */
function loopsWithoutLimit({ body, items, tools }: RequestFacts): number {
  const { mcp_servers: servers, reasoning } = body
  const mode = isObject(reasoning) ? reasoning['mode'] : reasoning
  // A toolset counts as a tool: it is how a request declares the tools of a server.
  const isDeclared = tools?.some((tool) => typeOf(tool) === 'mcp_toolset') === true
  const hasServers = isGiven(servers) && !isDeclared && !(Array.isArray(servers) && servers.length === 0)
  const isPro = isGiven(mode) && mode !== 'standard'
  return hasServers || isPro || isGiven(body['multi_agent']) || items.bringsTools ? 1 : 0
}

export function refersElsewhere(
  usage: UsageReader | null,
  { kind, body, items, marks }: RequestFacts,
): boolean {
  // Images may have more tokens than bytes; audio has fewer.
  if (kind === 'form') return usage === 'images'
  if (kind !== 'json') return true
  if ((marks & MARKS.elsewhere) !== 0 || items.refersElsewhere) return true
  // An earlier spoken answer is referenced by the id of its audio.
  const spoken = MARKS.audio | MARKS.id
  if (usage === 'chat' && (marks & spoken) === spoken) return true
  return continuesThread(body['thread']) || namesStored(body)
}

function namesStored(body: JsonObject): boolean {
  if (isObject(body['prompt'])) return true
  return isGiven(body['previous_response_id']) || isGiven(body['conversation'])
}

/** Whether the thread continues. A new thread is entirely in the request; a continued one is stored upstream. */
function continuesThread(thread: unknown): boolean {
  if (!isGiven(thread)) return false
  return !isObject(thread) || thread['type'] !== 'create' || isGiven(thread['previous_message_id'])
}

/** A second model writes SVGs, animations add images, and chunked audio has no known length. */
function hasUnboundedMedia(body: JsonObject): boolean {
  if (asksForSvg(body) || body['output_format'] === 'gif' || isGiven(body['partial_images'])) return true
  // A form has one field per member of an object.
  return Object.keys(body).some((name) => name.startsWith('chunking_strategy') && isGiven(body[name]))
}

/** Whether a fast speed is requested. Any value other than `standard` may be another name for it. */
function isFast(speed: unknown): boolean {
  return isGiven(speed) && speed !== 'standard'
}

/** The output limit of the request. If there are several, for example of a fallback, the largest is safe. */
function outputLimit(
  usage: UsageReader | null,
  body: JsonObject,
  fallbacks: readonly unknown[],
): number | null {
  const { outputLimits = [], mayBeSilent = false } = (usage === null ? undefined : READERS[usage]) ?? {}
  const stated = outputLimits.map((name) => body[name]).filter(isGiven)
  if (stated.length === 0) return null
  const own = fallbacks.map((entry) => (isObject(entry) ? entry['max_tokens'] : null)).filter(isGiven)
  let largest: number | null = null
  for (const value of [...stated, ...own]) {
    const limit = asLimit(value)
    largest = Math.max(largest ?? 0, limit === 0 && !mayBeSilent ? LIMITLESS : limit)
  }
  return largest
}

/** Upstream's maximum number of answers, also used for an unreadable number. */
const ANSWERS_MAX = 128

function answersOf(body: JsonObject): number {
  const requested = [body['n'], body['best_of']].map((value) => (isGiven(value) ? asLimit(value) : 1))
  return Math.min(Math.max(1, ...requested), ANSWERS_MAX)
}

/** Each prompt of a list is answered separately. A list of numbers is one prompt, as tokens. */
function promptsOf(usage: UsageReader | null, prompt: unknown): number {
  if (usage !== 'completions' || !Array.isArray(prompt)) return 1
  return prompt.every((each) => typeof each === 'number') ? 1 : prompt.length
}

/** Whether `context_management` lets upstream summarise the context. Other edits only remove parts of it. */
function asksToCompact(value: unknown): boolean {
  const edits = listOf(isObject(value) ? value['edits'] : value)
  if (edits === null) return true
  return edits.some((edit) => !isObject(edit) || !String(edit['type']).startsWith('clear_'))
}

/** Work that a stream does not show. It decides whether a call is read to its end after its client left. */
export const NOTHING_UNSEEN = {
  media: false as boolean,
  /** Whether the context is stored upstream or referenced, so that its tokens cannot be estimated from the request. */
  context: false as boolean,
  continues: null as string | null,
  streams: false as boolean,
  reasoning: false as boolean,
  stored: false as boolean,
  /** Whether the body was unreadable, so that nothing about the request is known. */
  request: false as boolean,
  images: 0,
  /** Output tokens of one image, by the size and quality that the request asks for. */
  imageTokens: (): number => 0,
}

export type UnseenWork = Readonly<typeof NOTHING_UNSEEN>

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
