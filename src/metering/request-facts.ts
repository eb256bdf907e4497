import type { Bound } from '../kernel/money.ts'
import type { JsonObject, Span } from './json-shape.ts'

/** A request as far as it was read: a plain object, the same for JSON, forms, messages of sockets and lines of batches. */
export interface RequestFacts {
  /** `not_read`: there was no body, or this endpoint does not need it. `unreadable`: `ambiguity` says why. */
  readonly kind: 'not_read' | 'json' | 'form' | 'unreadable'
  /** The members that somebody reads, parsed. UNREAD stands for a value that is there and was not read. */
  readonly body: JsonObject
  /** All tools of the body, those inside of namespaces among them; null where they cannot be read. */
  readonly tools: readonly JsonObject[] | null
  /** The models that the body names besides `model`. */
  readonly others: OtherModels
  /** Where the members of a JSON body stand, and its closing brace, for the one change that a body may need. */
  readonly spans: ReadonlyMap<string, Span>
  readonly objectEnd: number
  /** The marks of all strings of the body: bits of content-marks.ts. */
  readonly marks: number
  /** The length of the decoded body. */
  readonly bytes: number
  readonly items: ItemFacts
  readonly ambiguity: Ambiguity | null
}

/** Names of models, and why there may be more than these, as sentences. */
export interface OtherModels {
  readonly names: readonly string[]
  /** A name is there that cannot be read. */
  readonly unreadable: string | null
  /** Upstream chooses a model. */
  readonly open: string | null
}

/** The facts in the items of a body: the items of a conversation, the requests of a batch. There may be many of them. */
export interface ItemFacts {
  /** Every model that the items name, once. */
  readonly models: readonly string[]
  /** Why the items may lead to other models too, as a sentence, or null. */
  readonly unknown: string | null
  /** Some items bring tools, of whatever kind. */
  readonly bringsTools: boolean
  /** Some items name content that is kept upstream. */
  readonly refersElsewhere: boolean
  /** Some items ask for the conversation before them to be summed up. */
  readonly compacts: boolean
  /** The most that the requests of a batch may cost together; null where the items are no batch. */
  readonly bound: Bound | null
  /** The ambiguity of a request of a batch. */
  readonly ambiguity: Ambiguity | null
}

export const NO_ITEMS: ItemFacts = {
  models: [],
  unknown: null,
  bringsTools: false,
  refersElsewhere: false,
  compacts: false,
  bound: null,
  ambiguity: null,
}

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

const NO_SPANS: ReadonlyMap<string, Span> = new Map()

export const NOT_READ: RequestFacts = {
  kind: 'not_read',
  body: {},
  tools: [],
  others: { names: [], unreadable: null, open: null },
  spans: NO_SPANS,
  objectEnd: 0,
  marks: 0,
  bytes: 0,
  items: NO_ITEMS,
  ambiguity: null,
}

/** No model's name is longer. A longer text names no model, and is not worth keeping in every record. */
export const MODEL_NAME_CHARS_MAX = 256
