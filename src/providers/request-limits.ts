import type { PickedObject } from '../metering/json-place.ts'
import type { JsonMember } from '../metering/json-scan.ts'
import type { RequestFacts, RequestMember } from '../metering/request-facts.ts'
import type { Surface } from './endpoint.ts'
import { membersOf } from './pick-members.ts'
import { asksForSvg, fallbackModels, ModelNames, mayLeadToOthers, readOtherModels } from './read-models.ts'
import { NO_REQUEST_TOOLS, type RequestTools, readRequestTools, UNKNOWN_TOOLS } from './request-tools.ts'

/** What a request says that limits what it can cost. */
export interface RequestLimits {
  readonly maxOutputTokens: number | null
  readonly n: number
  readonly serviceTier: string | null
  readonly speed: string | null
  readonly geography: string | null
  readonly refersElsewhere: boolean
  readonly background: boolean
  /** A stored prompt, response or conversation takes part, which may bring a model of its own. */
  readonly stored: boolean
  readonly tools: RequestTools
  /** Models that may answer in the place of the one asked for. */
  readonly fallbackModels: readonly string[]
  /**
   * Something takes part that none of the above limits: a model that upstream chooses or that cannot be read, tools
   * that items of the conversation bring, a second model that writes an SVG.
   */
  readonly unlimited: boolean
}

/** The same marks as in content-marks.ts, to be looked for in a body that is no JSON, or is not known to be. */
const ELSEWHERE = [
  ...['"file_id"', '"url"', '_url"', '"container"', '"mcp_servers"', '"base64"', '"file_data"'],
  // They begin escaped letters: a name spelled with them could be any of the others.
  ...['\\u006', '\\u007'],
].map((text) => Buffer.from(text))

/** Marks in JSON were looked for as it passed: to look for each of them in the bytes took 3 ms for a MB of them. */
function refersElsewhere(facts: RequestFacts, body: () => Buffer | null): boolean {
  if (facts.kind === 'json') return facts.scan.marked
  const bytes = body()
  return bytes === null || ELSEWHERE.some((mark) => bytes.includes(mark))
}

/** `body` answers null where the bytes are not at hand, or encoded: then it may refer to anything. */
export function readLimits(surface: Surface, facts: RequestFacts, body: () => Buffer | null): RequestLimits {
  const get = (name: RequestMember): JsonMember | undefined =>
    facts.kind === 'json' ? facts.scan.members.get(name) : undefined
  const tools = bringsTools(facts) ? UNKNOWN_TOOLS : toolsOf(surface, get('tools'))
  const members = membersOf(facts)
  const stored =
    get('prompt')?.kind === 'object' || isGiven(get('previous_response_id')) || isGiven(get('conversation'))
  return {
    maxOutputTokens: outputLimit(get),
    n: Math.max(countOf(get('n')), countOf(get('best_of'))),
    serviceTier: textOf(get('service_tier')),
    speed: textOf(get('speed')),
    geography: textOf(get('inference_geo')),
    refersElsewhere: stored || tools.runsUpstream || refersElsewhere(facts, body),
    background: isTrue(get('background')),
    stored,
    tools,
    fallbackModels: otherModels(members, tools),
    unlimited: tools === UNKNOWN_TOOLS || asksForSvg(members) || leavesOpen(facts, members),
  }
}

function otherModels(members: PickedObject, tools: RequestTools): readonly string[] {
  const fallbacks = members.get('fallbacks') ?? null
  if (fallbacks === null) return tools.otherModels
  return [...fallbackModels(fallbacks).filter((model) => typeof model === 'string'), ...tools.otherModels]
}

function toolsOf(surface: Surface, member: JsonMember | undefined): RequestTools {
  if (!isGiven(member)) return NO_REQUEST_TOOLS
  return member.kind === 'array' ? readRequestTools(surface, member.json) : UNKNOWN_TOOLS
}

/** Items of a conversation can bring tools that run models or search, and nothing limits those. */
function bringsTools(facts: RequestFacts): boolean {
  if (facts.kind !== 'json' || facts.records === null) return false
  return facts.records.bringsTools || facts.records.unknown !== null
}

/** What a list of allowed models could not be held against, no price can be either. */
function leavesOpen(facts: RequestFacts, members: PickedObject): boolean {
  if (facts.kind === 'unreadable') return true
  if (!mayLeadToOthers(members)) return false
  const names = new ModelNames()
  readOtherModels(members, names)
  return names.unknown !== null
}

function isGiven(member: JsonMember | undefined): member is JsonMember {
  return member !== undefined && member.kind !== 'null'
}

function isTrue(member: JsonMember | undefined): boolean {
  return member?.kind === 'boolean' && member.value
}

function textOf(member: JsonMember | undefined): string | null {
  return member?.kind === 'string' ? member.value : null
}

const OUTPUT_LIMITS = ['max_tokens', 'max_completion_tokens', 'max_output_tokens'] as const

/** Upstream honours the limit of its own endpoint; where a request gives several, the largest is the safe one. */
function outputLimit(get: (name: RequestMember) => JsonMember | undefined): number | null {
  let largest: number | null = null
  for (const name of OUTPUT_LIMITS) {
    const member = get(name)
    if (!isGiven(member)) continue
    const limit = numberOf(member)
    if (limit === null) return null
    largest = Math.max(largest ?? limit, limit)
  }
  return largest
}

function numberOf(member: JsonMember): number | null {
  if (member.kind !== 'number' || !Number.isSafeInteger(member.value) || member.value < 0) return null
  return member.value
}

/** More answers than this, upstream gives to nobody; a number that cannot be read is taken for it. */
const ANSWERS_MAX = 128

function countOf(member: JsonMember | undefined): number {
  if (!isGiven(member)) return 1
  return Math.min(Math.max(1, numberOf(member) ?? ANSWERS_MAX), ANSWERS_MAX)
}
