import type { Bound } from '../kernel/money.ts'
import type { JsonObject, Span } from './json-shape.ts'

export interface OtherModels {
  readonly names: readonly string[]
  readonly unknown: string | null
}

/** Facts about the items of a body: a conversation's items, a batch's requests. There may be many. */
export const NO_ITEMS = {
  models: [] as readonly string[],
  /** Why the items may use further models, as a sentence; null if not. */
  unknown: null as string | null,
  bringsTools: false as boolean,
  refersElsewhere: false as boolean,
  /** Some items request compaction of the conversation before them. */
  compacts: false as boolean,
  /** Upper bound of all requests of a batch; null if the items are not a batch. */
  bound: null as Bound | null,
  ambiguity: null as Ambiguity | null,
}

export type ItemFacts = Readonly<typeof NO_ITEMS>

export interface Ambiguity {
  readonly detail: string
  /** `always`: parsers differ on the meaning. `limited`: only limited keys, because the body could not be read. */
  readonly refuse: 'always' | 'limited'
}

/** The facts read from a request: from a JSON body, a form, a socket message or a batch line. */
export const NOT_READ = {
  /** `not_read`: no body, or the endpoint does not need it. `unreadable`: `ambiguity` says why. */
  kind: 'not_read' as 'not_read' | 'json' | 'form' | 'unreadable',
  /** The parsed members. UNREAD: present but not read. */
  body: {} as JsonObject,
  /** All tools of the body, including those in namespaces; null if they cannot be read. */
  tools: [] as readonly JsonObject[] | null,
  others: { names: [], unknown: null } as OtherModels,
  /** Positions of the members and of the closing brace, for injecting `include_usage`. */
  spans: new Map() as ReadonlyMap<string, Span>,
  objectEnd: 0,
  marks: 0,
  bytes: 0,
  items: NO_ITEMS as ItemFacts,
  ambiguity: null as Ambiguity | null,
}

export type RequestFacts = Readonly<typeof NOT_READ>

/** Longer texts are not stored. */
export const MODEL_NAME_CHARS_MAX = 256
