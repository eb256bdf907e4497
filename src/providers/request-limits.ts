import { MARKS } from '../metering/content-marks.ts'
import type { PickedObject } from '../metering/json-place.ts'
import type { JsonMember } from '../metering/json-scan.ts'
import type { RequestFacts, RequestMember } from '../metering/request-facts.ts'
import type { Endpoint, UsageReader } from './endpoint.ts'
import { asksForSvg, ModelNames, mayLeadToOthers, readOtherModels } from './named-models.ts'
import { count, type GetMember, isGiven, LIMITLESS, memberGetter, membersOf } from './request-members.ts'
import { NO_REQUEST_TOOLS, type RequestTools, readRequestTools, UNKNOWN_TOOLS } from './request-tools.ts'
import { READERS, SURFACES } from './surfaces.ts'

/** The members of a request that limit what it can cost. */
export interface RequestLimits {
  readonly maxOutputTokens: number | null
  /** The longest that audio can be which is paid by its length, where the body's bytes do not bound it. */
  readonly audioMsMax?: number
  /** The most tokens of a prediction: those that do not come true are paid for like output. */
  readonly predictedTokensMax: number
  /** How many prompts there are, and how many answers to all of them together. */
  readonly prompts: number
  readonly n: number
  readonly serviceTier: string | null
  readonly speed: string | null
  /** The request or one of its fallbacks asks for speed. */
  readonly mayBeFast: boolean
  readonly geography: string | null
  readonly refersElsewhere: boolean
  /** The body mentions audio and ids: it may refer to an answer that was spoken earlier. */
  readonly mayReferToAudio: boolean
  /** From so many tokens on upstream may sum up the context first (compaction); null where it does not. */
  readonly compactsAbove: number | null
  readonly background: boolean
  /** A stored prompt, response or conversation takes part, which may bring a model of its own. */
  readonly stored: boolean
  readonly tools: RequestTools
  /** The models that may answer in the place of the model asked for. */
  readonly fallbacks: readonly Fallback[]
  /**
   * Something takes part that none of the above limits: a model that upstream chooses or that cannot be read, tools
   * that items of the conversation bring, a second model that writes an SVG.
   */
  readonly unlimited: boolean
}

export interface Fallback {
  readonly model: string
  readonly maxOutputTokens: number | null
}

export function readLimits(endpoint: Endpoint, facts: RequestFacts): RequestLimits {
  const get = memberGetter(facts)
  const usage = endpoint.billing === 'metered' ? endpoint.usage : null
  const members = membersOf(facts)
  const tools = toolsOf(endpoint, usage, facts, get)
  const maxOutputTokens = outputLimit(usage, get)
  const fallbacks = fallbacksOf(get('fallbacks'), maxOutputTokens)
  const prompts = promptsOf(facts, get('prompt'))
  const limits: RequestLimits = {
    maxOutputTokens,
    predictedTokensMax: lengthOf(get('prediction')),
    prompts,
    n: prompts * answersOf(facts),
    serviceTier: textOf(get('service_tier')),
    speed: textOf(get('speed')),
    mayBeFast: isFast(textOf(get('speed'))) || fallbacks.some(({ speed }) => isFast(speed)),
    geography: textOf(get('inference_geo')),
    refersElsewhere: tools.usesMax !== 0 || refersElsewhere(usage, facts, get),
    mayReferToAudio: usage === 'chat' && hasMarks(facts, MARKS.audio | MARKS.id),
    compactsAbove: isToBeSummedUp(facts, get) ? 0 : compactsAbove(get('context_management')),
    background: isTrue(get('background')),
    stored: namesStored(get),
    tools,
    fallbacks,
    unlimited: isUnlimited(endpoint, facts, get, members) || tools === UNKNOWN_TOOLS,
  }
  return usage === 'chat' && isGiven(get('web_search_options')) ? withSearch(limits) : limits
}

/** The limits of a chat that searches the web: once, as it is paid for, and the model reads what is found. */
export function withSearch(limits: RequestLimits): RequestLimits {
  const { webSearchesMax } = limits.tools
  const searches = webSearchesMax === null ? null : Math.max(1, webSearchesMax)
  return { ...limits, refersElsewhere: true, tools: { ...limits.tools, webSearchesMax: searches } }
}

/** Whether the request itself names or carries content that its bytes do not tell; tools may bring more. Marks in JSON were looked for as the body passed: to search its bytes for each mark took 3 ms for a MB. */
export function refersElsewhere(usage: UsageReader | null, facts: RequestFacts, get: GetMember): boolean {
  // The tokens of pixels are not bounded by their bytes; sound has fewer tokens than bytes.
  if (facts.kind === 'form') return usage === 'images'
  if (facts.kind !== 'json') return true
  if (hasMarks(facts, MARKS.elsewhere) || facts.records?.refersElsewhere === true) return true
  return goesOn(get('thread')) || namesStored(get)
}

function namesStored(get: GetMember): boolean {
  if (get('prompt')?.kind === 'object') return true
  return isGiven(get('previous_response_id')) || isGiven(get('conversation'))
}

function hasMarks(facts: RequestFacts, marks: number): boolean {
  return facts.kind === 'json' && (facts.scan.marks & marks) === marks
}

/** The request, or an item of it, asks for a summary. */
function isToBeSummedUp(facts: RequestFacts, get: GetMember): boolean {
  return isGiven(get('compaction')) || (facts.kind === 'json' && facts.records?.compacts === true)
}

/** A thread that begins is all in the request; one that goes on is kept upstream. */
function goesOn(thread: JsonMember | undefined): boolean {
  if (!isGiven(thread)) return false
  if (thread.kind !== 'object') return true
  const { type, previous_message_id: previous } = JSON.parse(thread.json) as Readonly<Record<string, unknown>>
  return type !== 'create' || (previous ?? null) !== null
}

function isUnlimited(
  endpoint: Endpoint,
  facts: RequestFacts,
  get: GetMember,
  members: PickedObject,
): boolean {
  if (facts.kind === 'unreadable') return true
  // The members of a form are not looked for where the endpoint reads JSON.
  if (facts.kind === 'form') return endpoint.reads !== 'multipart' || drawsMore(facts, members)
  if (SURFACES[endpoint.surface].toolsInConversation && hasMarks(facts, MARKS.tool)) return true
  if (isFilled(get('mcp_servers')) || isGiven(get('multi_agent'))) return true
  return drawsMore(facts, members) || leavesOpen(members)
}

/** An SVG is written by a second model; films and images half done are more images; audio in pieces has no length. */
function drawsMore(facts: RequestFacts, members: PickedObject): boolean {
  if (asksForSvg(members) || members['output_format'] === 'gif') return true
  return hasMember(facts, 'partial_images') || hasMember(facts, 'chunking_strategy')
}

function hasMember(facts: RequestFacts, name: RequestMember): boolean {
  // A form has an object as a field for each of its members.
  if (facts.kind === 'form')
    return [...facts.scan.fields.keys()].some((field) => field.split('[')[0] === name)
  return facts.kind === 'json' && isGiven(facts.scan.members.get(name))
}

/** A model that cannot be checked against a list of allowed models cannot be priced either. */
function leavesOpen(members: PickedObject): boolean {
  if (!mayLeadToOthers(members)) return false
  const names = new ModelNames()
  readOtherModels(members, names)
  return names.unknown !== null
}

function toolsOf(
  endpoint: Endpoint,
  usage: UsageReader | null,
  facts: RequestFacts,
  get: GetMember,
): RequestTools {
  if (bringsTools(facts)) return UNKNOWN_TOOLS
  const tools = get('tools')
  if (!isGiven(tools)) return NO_REQUEST_TOOLS
  if (tools.kind !== 'array') return UNKNOWN_TOOLS
  const callsMax = usage === 'responses' ? countOf(get('max_tool_calls')) : LIMITLESS
  const limited = callsMax !== LIMITLESS && callsMax > 0
  return readRequestTools(endpoint.surface, tools.json, limited ? callsMax : null)
}

/** Items of a conversation can bring tools that run models or search, and nothing limits such tools. */
function bringsTools(facts: RequestFacts): boolean {
  if (facts.kind !== 'json' || facts.records === null) return false
  return facts.records.bringsTools || facts.records.unknown !== null
}

interface SpeedyFallback extends Fallback {
  readonly speed: unknown
}

/** Fallbacks that cannot be read are refused, or left to upstream, elsewhere: readFallbacks of named-models.ts. */
function fallbacksOf(member: JsonMember | undefined, asked: number | null): readonly SpeedyFallback[] {
  if (member?.kind !== 'array') return []
  return (JSON.parse(member.json) as readonly unknown[]).flatMap((entry) => {
    if (typeof entry === 'string') return [{ model: entry, maxOutputTokens: asked, speed: null }]
    const { model, max_tokens: own, speed } = (entry ?? {}) as Readonly<Record<string, unknown>>
    if (typeof model !== 'string') return []
    const maxOutputTokens = own === null || own === undefined ? asked : count(own)
    return [{ model, maxOutputTokens, speed: speed === null || speed === undefined ? null : speed }]
  })
}

/** Any word but `standard` may be another spelling of a fast speed. */
function isFast(speed: unknown): boolean {
  return speed !== null && speed !== 'standard'
}

/** Where a request gives several limits of output, the largest is the safe one. */
function outputLimit(usage: UsageReader | null, get: GetMember): number | null {
  const { outputLimits = [], mayBeSilent = false } = (usage === null ? undefined : READERS[usage]) ?? {}
  let largest: number | null = null
  for (const name of outputLimits) {
    const member = get(name)
    if (!isGiven(member)) continue
    const limit = countOf(member)
    largest = Math.max(largest ?? 0, limit === 0 && !mayBeSilent ? LIMITLESS : limit)
  }
  return largest
}

/** The most answers that upstream gives; a number that cannot be read is taken for this. */
const ANSWERS_MAX = 128

/** The number of answers to one prompt. */
function answersOf(facts: RequestFacts): number {
  return Math.min(Math.max(1, askedFor(facts, 'n'), askedFor(facts, 'best_of')), ANSWERS_MAX)
}

function askedFor(facts: RequestFacts, name: 'n' | 'best_of'): number {
  if (facts.kind === 'json') {
    const member = facts.scan.members.get(name)
    return isGiven(member) ? countOf(member) : 1
  }
  const field = facts.kind === 'form' ? facts.scan.fields.get(name) : undefined
  if (field === undefined) return 1
  return field.kind === 'text' && /^\d+$/.test(field.value) ? Number(field.value) : LIMITLESS
}

/** An array of numbers holds the tokens of one prompt. */
const TOKENS = /^\[[\d\s,.eE+-]*\]$/

function promptsOf(facts: RequestFacts, prompt: JsonMember | undefined): number {
  if (facts.kind !== 'json' || facts.records === null) return 1
  return prompt?.kind === 'array' && TOKENS.test(prompt.json) ? 1 : facts.records.prompts
}

function lengthOf(member: JsonMember | undefined): number {
  return isGiven(member) ? member.end - member.start : 0
}

function isFilled(member: JsonMember | undefined): boolean {
  return isGiven(member) && !(member.kind === 'array' && /^\[\s*\]$/.test(member.json))
}

function isTrue(member: JsonMember | undefined): boolean {
  return member?.kind === 'boolean' && member.value
}

/** A member that is given and is no text is taken for an unknown word. */
function textOf(member: JsonMember | undefined): string | null {
  if (!isGiven(member)) return null
  return member.kind === 'string' ? member.value : ''
}

function countOf(member: JsonMember | undefined): number {
  return count(member?.kind === 'number' ? member.value : null)
}

/** The tokens from which on Messages sums up unless it is told otherwise. */
const DEFAULT_TRIGGER_TOKENS = 150_000

type Entry = Readonly<Record<string, unknown>>

/**
 * The tokens from which on a `context_management` has upstream sum up the context before it answers, which is a pass of its
 * own; null if it does not, 0 where that cannot be read. Messages has a list of `edits`, Responses the list alone.
 */
function compactsAbove(member: JsonMember | undefined): number | null {
  if (member === undefined || member.kind === 'null') return null
  if (member.kind !== 'object' && member.kind !== 'array') return 0
  const value = JSON.parse(member.json) as readonly unknown[] | Entry
  const entries = Array.isArray(value) ? (value as readonly unknown[]) : (value as Entry)['edits']
  if (entries === null || entries === undefined) return null
  if (!Array.isArray(entries)) return 0
  let least: number | null = null
  for (const entry of entries as readonly unknown[]) {
    const threshold = thresholdOf((entry ?? {}) as Entry)
    if (threshold !== null) least = Math.min(least ?? threshold, threshold)
  }
  return least
}

function thresholdOf({ type, trigger, compact_threshold: threshold }: Entry): number | null {
  // Edits of these types only leave parts of the context out.
  if (typeof type === 'string' && type.startsWith('clear_')) return null
  if (type === 'compaction') return readable(threshold)
  if (trigger === null || trigger === undefined)
    return type === 'compact_20260112' ? DEFAULT_TRIGGER_TOKENS : 0
  const { type: unit, value } = trigger as Entry
  return unit === 'input_tokens' ? readable(value) : 0
}

function readable(value: unknown): number {
  const tokens = count(value)
  return tokens === LIMITLESS ? 0 : tokens
}
