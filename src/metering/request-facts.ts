import type { Bound } from '../kernel/money.ts'
import { capturing, type Place } from './json-place.ts'
import type { JsonScan } from './json-scan.ts'
import type { MultipartScan } from './multipart-scanner.ts'

/** The members of a request that decide what it may do and what it can cost. Nothing else of a body is looked at. */
export const REQUEST_MEMBERS = [
  'model',
  'stream',
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'n',
  'best_of',
  'service_tier',
  'speed',
  'inference_geo',
  'stream_options',
  'background',
  'previous_response_id',
  'conversation',
  'prompt',
  'fallbacks',
  'tools',
  'moderation',
  'svg',
  'output_format',
  'method',
  'input_file_id',
  'store',
  'thinking',
  'reasoning',
  'reasoning_effort',
  'modalities',
  'size',
  'quality',
  'thread',
  'context_management',
  'compaction',
  'mcp_servers',
  'multi_agent',
  'max_tool_calls',
  'web_search_options',
  'prediction',
  'partial_images',
  'chunking_strategy',
] as const

/** Requests for speech have their text in `input`: in other requests `input` is long, and would be copied in vain. */
const SPEECH_MEMBERS = [...REQUEST_MEMBERS, 'input', 'response_format'] as const

/** A batch that is made of a file names the endpoint that its requests are for. */
const FILE_BATCH_MEMBERS = [...REQUEST_MEMBERS, 'endpoint'] as const

/** The members of `chunking_strategy` where it is an object: SDKs write each as a field of a form. */
export const TRANSCRIPTION_FIELDS = [
  ...REQUEST_MEMBERS,
  'chunking_strategy[type]',
  'chunking_strategy[threshold]',
  'chunking_strategy[prefix_padding_ms]',
  'chunking_strategy[silence_duration_ms]',
] as const

/** A request that comes over a socket states its `type`, and by `stream_id` the lane in which its answer is to come. */
const SOCKET_MEMBERS = [...REQUEST_MEMBERS, 'type', 'stream_id'] as const

export type RequestMember = (
  | typeof SPEECH_MEMBERS
  | typeof FILE_BATCH_MEMBERS
  | typeof TRANSCRIPTION_FIELDS
  | typeof SOCKET_MEMBERS
)[number]

/** The members as places to be looked for: making these for every request took as long as scanning 10 kB of its body. */
export const REQUEST_NAMES: Place = capturing(REQUEST_MEMBERS)
export const SPEECH_NAMES: Place = capturing(SPEECH_MEMBERS)
export const FILE_BATCH_NAMES: Place = capturing(FILE_BATCH_MEMBERS)
export const SOCKET_NAMES: Place = capturing(SOCKET_MEMBERS)

/** The facts that were found in a request's body. */
export type RequestFacts =
  /** There was no body, or this endpoint does not need it to be read. */
  | { readonly kind: 'not_read' }
  | {
      readonly kind: 'json'
      readonly scan: Extract<JsonScan<RequestMember>, { kind: 'object' }>
      /** Null where the records were not looked into. */
      readonly records: RecordsFound | null
      readonly doubt: Doubt | null
    }
  | {
      readonly kind: 'form'
      readonly scan: Extract<MultipartScan<RequestMember>, { kind: 'form' }>
      readonly doubt: Doubt | null
    }
  | { readonly kind: 'unreadable'; readonly reason: string }

/**
 * Why upstream may find something else in a body that was read here without trouble.
 * - `may_be_form`: the body's type says that it is a form, and its content could be one: `{"model":"a","x":"&model=b&"}`.
 * - `deflate`: some servers take that for the zlib format and some for bare deflate, and bytes can be made that are both.
 * - `foreign_charset`: the body's type says that its text is not UTF-8; where upstream believes that, quotes may stand elsewhere.
 */
export type Doubt = 'may_be_form' | 'deflate' | 'foreign_charset'

/** Why a body can be read in two ways, or in none. */
export interface Ambiguity {
  /** The reason as a sentence. */
  readonly detail: string
  /**
   * `always`: parsers differ on what the body says, so a metered endpoint refuses it to every key. `limited`: the
   * body could not be read here, and upstream answers it unless there is a limit to be kept.
   */
  readonly refuse: 'always' | 'limited'
}

/** The facts in the records of a body: the requests of a batch, the items of a conversation. There may be many records. */
export interface RecordsFound {
  /** Every model that the records name, once. */
  readonly models: readonly string[]
  /** Why the records may lead to other models too, as a sentence, or null. */
  readonly unknown: string | null
  readonly ambiguity: Ambiguity | null
  /** Some records bring tools, of whatever kind: the request's own declarations do not limit what these tools may do. */
  readonly bringsTools: boolean
  /** Some records name content that is kept upstream. */
  readonly refersElsewhere: boolean
  /** Some records ask for the conversation before them to be summed up. */
  readonly compacts: boolean
  /** How many prompts there are, each of which is answered on its own. */
  readonly prompts: number
  /** The most that the requests of a batch may cost together; null where the records are no batch. */
  readonly bound: Bound | null
}

export const NOT_READ: RequestFacts = { kind: 'not_read' }

/** No model's name is longer. A longer text names no model, and is not worth keeping in every record. */
export const MODEL_NAME_CHARS_MAX = 256
