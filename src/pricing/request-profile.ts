import type { Surface } from '../kernel/vocabulary.ts'
import type { Mode } from './price-file.ts'

/**
 * What bounds the cost of a request. If several classes apply, the last one of this list counts.
 * - `plain`: the bytes of the body, and the output limit.
 * - `elsewhere`: the context window and the output limit, because the request refers to content outside of it, or
 *   contains images, documents or audio.
 * - `exotic`: as `elsewhere`, for each pass that upstream may run for tools, fallbacks, advisors or compaction.
 * - `unknown`: nothing, because part of the request has no limit or cannot be read.
 */
export type BoundClass = 'plain' | 'elsewhere' | 'exotic' | 'unknown'

/** The paid tools that a request declares, and how often upstream may use them at most. */
export interface RequestTools {
  /** How often upstream may run tools whose results the model reads. */
  readonly uses: number
  readonly webSearches: number
  readonly fileSearches: number
  readonly containers: number
  readonly imageModel: string | null
}

export const NO_REQUEST_TOOLS: RequestTools = {
  uses: 0,
  webSearches: 0,
  fileSearches: 0,
  containers: 0,
  imageModel: null,
}

/** Everything about a request that decides what it may cost. A surface computes it once. */
export interface RequestProfile {
  readonly surface: Surface
  /** The path template of the endpoint; for an unknown endpoint, its path. */
  readonly endpoint: string
  /** The kinds of models that can serve the endpoint. */
  readonly modes: readonly Mode[]
  readonly model: string | null
  /** Whether upstream chooses its default model: the request names none, and no stored object could name one. */
  readonly usesDefaultModel: boolean
  readonly otherModels: readonly string[]
  readonly boundClass: BoundClass
  readonly bodyBytes: number
  /** Characters of the text of a speech request; null if the text is not read, or for other requests. */
  readonly characters: number | null
  /** Maximum length of audio that is priced by length; null if the size of the body bounds it. */
  readonly audioMsMax: number | null
  /** Whether a second model may transcribe that audio. The session may choose any. */
  readonly mayTranscribe: boolean
  /** Maximum tokens of all inputs together, if the endpoint has its own limit. */
  readonly inputTokensMax: number | null
  /** The largest output limit that the request states; null if it states none and the model's limit applies. */
  readonly maxOutputTokens: number | null
  /** Number of prompts, and of answers to all prompts together. */
  readonly prompts: number
  readonly answers: number
  /** The tier and speed for the call if upstream does not state them; null: standard, or unknown. */
  readonly serviceTier: string | null
  readonly speed: string | null
  /** Whether replies of the endpoint state the tier that served the call. */
  readonly statesTier: boolean
  readonly mayBeFast: boolean
  readonly geography: string | null
  /** Whether the upstream host processes in one region only. */
  readonly regional: boolean
  readonly batch: boolean
  readonly compacts: boolean
  /** The passes that upstream may run after the first: tool uses and fallbacks. */
  readonly passes: number
  readonly tools: RequestTools
  /** When an answer costs one web search that no reply states: if the request asks, or if its model always searches. */
  readonly searchFee: 'never' | 'by_model' | 'asked'
  readonly searchSize: string | null
  /** Whether code runs free of charge, because the request declares web tools that include it. */
  readonly codeRunsFree: boolean
  readonly hidden: HiddenWork
}

/** Work that a stream does not show. It decides how a call is billed and read after its client has left. */
export interface HiddenWork {
  readonly makesMedia: boolean
  /** Whether the context is stored upstream or referenced, so that its tokens cannot be estimated from the request. */
  readonly refersElsewhere: boolean
  readonly streams: boolean
  readonly mayReason: boolean
  /** Whether upstream stores the reply, so that it can be fetched. */
  readonly stored: boolean
  readonly background: boolean
  /** Whether the body was unreadable, so that nothing about the request is known. */
  readonly unreadable: boolean
  /** Output tokens of one image, by the size and quality that the request asks for. */
  readonly imageTokens: number
}

export const NOTHING_HIDDEN: HiddenWork = {
  makesMedia: false,
  refersElsewhere: false,
  streams: false,
  mayReason: false,
  stored: false,
  background: false,
  unreadable: false,
  imageTokens: 0,
}
