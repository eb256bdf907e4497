import { type FoundModels, NO_MODELS } from '../kernel/model-names.ts'
import type { Bound } from '../kernel/money.ts'
import type { JsonObject, Span } from '../metering/json-shape.ts'
import { MarkTable } from '../metering/mark-table.ts'

/** Facts about the items of a body: a conversation's items, a batch's requests. There may be many. */
export interface ItemFacts {
  readonly models: FoundModels
  readonly bringsTools: boolean
  readonly refersElsewhere: boolean
  /** Some items request compaction of the conversation before them. */
  readonly compacts: boolean
  /** Upper bound of all requests of a batch; null if the items are not a batch. */
  readonly bound: Bound | null
  readonly ambiguity: Ambiguity | null
}

export const NO_ITEMS: ItemFacts = {
  models: NO_MODELS,
  bringsTools: false,
  refersElsewhere: false,
  compacts: false,
  bound: null,
  ambiguity: null,
}

export interface Ambiguity {
  readonly detail: string
  /** `always`: parsers differ on the meaning. `limited`: only limited keys, because the body could not be read. */
  readonly refuse: 'always' | 'limited'
}

/** The facts read from a request: from a JSON body, a form, a socket message or a batch line. */
export interface RequestFacts {
  /** `not_read`: no body, or the endpoint does not need it. `unreadable`: `ambiguity` says why. */
  readonly kind: 'not_read' | 'json' | 'form' | 'unreadable'
  /** The parsed members. UNREAD: present but not read. */
  readonly body: JsonObject
  /** All tools of the body, including those in namespaces; null if they cannot be read. */
  readonly tools: readonly JsonObject[] | null
  /** Models besides the one that the request is for: of fallbacks, tools and moderation. */
  readonly others: FoundModels
  /** Positions of the members and of the closing brace, for injecting `include_usage`. */
  readonly spans: ReadonlyMap<string, Span>
  readonly objectEnd: number
  /** What strings anywhere in the body say about its content: bits of MARKS. */
  readonly marks: number
  readonly bytes: number
  readonly items: ItemFacts
  readonly ambiguity: Ambiguity | null
}

export const NOT_READ: RequestFacts = {
  kind: 'not_read',
  body: {},
  tools: [],
  others: NO_MODELS,
  spans: new Map(),
  objectEnd: 0,
  marks: 0,
  bytes: 0,
  items: NO_ITEMS,
  ambiguity: null,
}

/** Longer texts are not stored. */
export const MODEL_NAME_CHARS_MAX = 256

/** What member names, and values of `type`, say about the content of a request. */
export const MARKS = {
  /** Content whose tokens cannot be estimated from the bytes of the body: references, pages, pixels, seconds. */
  elsewhere: 1,
  tool: 2,
  /** A body with both marks may refer to the audio of an earlier answer by its id. */
  audio: 4,
  id: 8,
} as const

export const CONTENT_MARKS = new MarkTable(
  {
    file_id: MARKS.elsewhere,
    url: MARKS.elsewhere,
    container: MARKS.elsewhere,
    mcp_servers: MARKS.elsewhere,
    base64: MARKS.elsewhere,
    file_data: MARKS.elsewhere,
    input_audio: MARKS.elsewhere,
    tool_definition: MARKS.tool,
    audio: MARKS.audio,
    id: MARKS.id,
  },
  // Such as `image_url`.
  { _url: MARKS.elsewhere },
)

/** The members that decide what a request may do and cost. Other members of a body are not read. */
export const REQUEST_MEMBERS: readonly string[] = [
  ...'model stream max_tokens max_completion_tokens max_output_tokens n best_of service_tier'.split(' '),
  ...'speed inference_geo stream_options background previous_response_id conversation prompt'.split(' '),
  ...'fallbacks tools moderation svg output_format input_file_id store thinking reasoning'.split(' '),
  ...'reasoning_effort modalities size quality thread context_management compaction'.split(' '),
  ...'mcp_servers multi_agent max_tool_calls web_search_options partial_images'.split(' '),
  ...'chunking_strategy'.split(' '),
]

/** Names that are read inside these members. A duplicate makes the body ambiguous. */
export const INNER_NAMES: ReadonlySet<string> = new Set([
  ...'id type model tools max_uses max_tokens speed svg output_format size quality execution'.split(' '),
  ...'environment include_usage edits previous_message_id search_context_size mode'.split(' '),
])

/** Whether a member is given. Many clients send null for an omitted member. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** The requested model; null if there is none or it is unreadable. */
export function modelAsked({ body: { model } }: RequestFacts): string | null {
  return typeof model === 'string' && model.length <= MODEL_NAME_CHARS_MAX ? model : null
}

/** Stands for a limit that is missing or unreadable, whose number for upstream is unknown. */
export const LIMITLESS = Number.MAX_SAFE_INTEGER

/** A JSON value as a non-negative integer, including 1e3 and 8.0. Strings, -1 and 1.5 are limitless. */
export function asLimit(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : LIMITLESS
}

/** The value as a word. A value that is not a string counts as an unknown word. */
export function asWord(value: unknown): string | null {
  if (!isGiven(value)) return null
  return typeof value === 'string' ? value : ''
}

/** The elements of a list; null if the value is not a list. */
export function elementsOf(value: unknown): readonly unknown[] | null {
  if (!isGiven(value)) return []
  return Array.isArray(value) ? value : null
}
