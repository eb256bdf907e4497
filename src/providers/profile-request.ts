import type { Surface } from '../kernel/vocabulary.ts'
import { isObject, type JsonObject, UNREAD } from '../metering/json-shape.ts'
import {
  type BoundClass,
  NO_REQUEST_TOOLS,
  NOTHING_HIDDEN,
  type RequestProfile,
} from '../pricing/request-profile.ts'
import { spokenCharacters } from './chat/audio.ts'
import { imageTokens } from './chat/images.ts'
import type { Endpoint, UsageReader } from './endpoint.ts'
import { asksForSvg } from './named-models.ts'
import {
  asLimit,
  asWord,
  elementsOf,
  isGiven,
  LIMITLESS,
  MARKS,
  MODEL_NAME_CHARS_MAX,
  modelAsked,
  type RequestFacts,
} from './request-facts.ts'
import { readTools, typeOf, USES_WITHOUT_LIMIT } from './request-tools.ts'
import { REPLY_READERS, SURFACES } from './surfaces.ts'

export interface ProfiledRequest {
  readonly surface: Surface
  readonly path: string
  readonly endpoint: Endpoint | null
  readonly facts: RequestFacts
  readonly bodyBytes: number
}

/** What the configured upstreams decide about every request. */
export interface UpstreamTerms {
  /** The tier that the upstream project of the Chat surface applies if a request leaves it open. */
  readonly chatDefaultTier: string | null
  /** Whether the Chat upstream processes in one region only. */
  readonly chatRegional: boolean
}

type MeteredEndpoint = Endpoint & { readonly billing: 'metered' }

export function profileRequest(request: ProfiledRequest, terms: UpstreamTerms): RequestProfile {
  const { surface, endpoint, facts, bodyBytes, path } = request
  const model = modelAsked(facts)
  const base = {
    ...UNMETERED,
    surface,
    endpoint: endpoint?.template ?? shortened(path),
    model,
    bodyBytes,
    regional: surface === 'chat' && terms.chatRegional,
  }
  if (endpoint?.billing !== 'metered') return base
  return {
    ...withStated(base, endpoint, facts),
    serviceTier: shortened(tierAsked(surface, asWord(facts.body['service_tier']), terms)),
    usesDefaultModel: model === null && !namesStored(facts.body) && !isGiven(facts.body['model']),
    hidden: hiddenWork(endpoint, facts, model),
  }
}

/** The profile of a request to an endpoint that is free, or whose cost is not in its reply. */
const UNMETERED = {
  modes: [],
  usesDefaultModel: false,
  otherModels: [],
  boundClass: 'unknown',
  characters: null,
  audioMsMax: null,
  mayTranscribe: false,
  inputTokensMax: null,
  maxOutputTokens: null,
  prompts: 1,
  answers: 1,
  serviceTier: null,
  speed: null,
  statesTier: true,
  mayBeFast: false,
  geography: null,
  batch: false,
  compacts: false,
  passes: 0,
  tools: NO_REQUEST_TOOLS,
  searchFee: 'never',
  searchSize: null,
  codeRunsFree: false,
  hidden: NOTHING_HIDDEN,
} as const

function withStated(base: RequestProfile, endpoint: MeteredEndpoint, facts: RequestFacts): RequestProfile {
  const { usage, modes, statesTier, inputTokensMax } = endpoint
  const { body, items, others } = facts
  const spec = SURFACES[endpoint.surface]
  const callsMax = usage === 'responses' ? asLimit(body['max_tool_calls']) : LIMITLESS
  const isLimited = callsMax !== LIMITLESS && callsMax !== 0
  const tools = readTools(spec.tools, facts.tools, isLimited ? callsMax : null)
  const fallbacks = elementsOf(body['fallbacks']) ?? []
  const passes = tools.uses + USES_WITHOUT_LIMIT * loopsWithoutLimit(facts) + fallbacks.length
  const compacts = items.compacts || isGiven(body['compaction']) || asksToCompact(body['context_management'])
  const isExotic = passes > 0 || compacts || others.names.length > 0
  const prompts = promptsOf(usage, body['prompt'])
  const search = endpoint.hasSearchFee ? searchFee(body) : base
  return {
    ...base,
    modes,
    statesTier,
    inputTokensMax,
    boundClass: classOf(endpoint, facts, isExotic),
    maxOutputTokens: outputLimit(usage, body, fallbacks),
    prompts,
    characters: usage === 'speech' ? spokenCharacters(facts) : null,
    answers: prompts * answersOf(body),
    speed: asWord(body['speed']),
    mayBeFast: isFast(body['speed']) || fallbacks.some((entry) => isObject(entry) && isFast(entry['speed'])),
    geography: asWord(body['inference_geo']),
    compacts,
    tools: { ...tools, imageModel: shortened(tools.imageModel) },
    passes,
    otherModels: others.names,
    searchFee: search.searchFee,
    searchSize: search.searchSize,
    codeRunsFree: spec.codeRunsFree(facts),
  }
}

function classOf(endpoint: MeteredEndpoint, facts: RequestFacts, isExotic: boolean): BoundClass {
  const { body, items, kind, others } = facts
  const isUnknown =
    kind === 'unreadable' ||
    // Form fields are ignored if the endpoint reads JSON.
    (kind === 'form' && endpoint.reads !== 'multipart') ||
    others.unknown !== null ||
    items.models.unknown !== null ||
    (SURFACES[endpoint.surface].toolsInConversation && (facts.marks & MARKS.tool) !== 0) ||
    (endpoint.usage === 'completions' && body['prompt'] === UNREAD) ||
    hasUnboundedMedia(body)
  if (isUnknown) return 'unknown'
  if (isExotic) return 'exotic'
  return refersElsewhere(endpoint.usage, facts) ? 'elsewhere' : 'plain'
}

function searchFee({ web_search_options: options }: JsonObject) {
  const size = isObject(options) ? options['search_context_size'] : null
  return {
    searchFee: isGiven(options) ? ('asked' as const) : ('by_model' as const),
    searchSize: isGiven(size) ? String(size) : null,
  }
}

/** A request for `auto`, or for no tier, leaves the tier to the settings of the upstream project. */
function tierAsked(surface: Surface, stated: string | null, terms: UpstreamTerms): string | null {
  const isOpen = stated === null || stated === 'auto'
  return isOpen && SURFACES[surface].hasProjectTier ? terms.chatDefaultTier : stated
}

/** Truncates a name for the stored rating. No priced name is longer than the limit. */
function shortened<T extends string | null>(name: T): T
function shortened(name: string | null): string | null {
  return name === null ? null : name.slice(0, MODEL_NAME_CHARS_MAX)
}

function hiddenWork({ usage }: MeteredEndpoint, facts: RequestFacts, model: string | null) {
  const { body } = facts
  const spec = REPLY_READERS[usage]
  return {
    makesMedia: spec?.makesMedia?.(body) ?? false,
    refersElsewhere: refersElsewhere(usage, facts),
    streams: body['stream'] === true,
    mayReason: spec?.mayReason?.(body, model) ?? false,
    stored: spec?.stored === true && body['store'] !== false,
    background: spec?.mayBeBackground === true && body['background'] === true,
    unreadable: facts.kind === 'unreadable',
    imageTokens: imageTokens(facts),
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

function refersElsewhere(usage: UsageReader | null, { kind, body, items, marks }: RequestFacts): boolean {
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
  const { outputLimits = [], mayBeSilent = false } = (usage === null ? undefined : REPLY_READERS[usage]) ?? {}
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
  const edits = elementsOf(isObject(value) ? value['edits'] : value)
  if (edits === null) return true
  return edits.some((edit) => !isObject(edit) || !String(edit['type']).startsWith('clear_'))
}
