import { type FoundModels, NO_MODELS } from '../kernel/model-names.ts'
import type { Bound } from '../kernel/money.ts'
import type { JsonObject, Span } from '../metering/json-shape.ts'

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
