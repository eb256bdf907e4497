import type { ObjectKind, Surface } from '../kernel/vocabulary.ts'
import type { Mode } from '../pricing/price-file.ts'

/** `WS` is a GET with an upgrade to WebSocket, which is a different endpoint than a plain GET. */
export type EndpointMethod = 'GET' | 'POST' | 'DELETE' | 'WS'

/** The kind of body that must be read to find the model, by the location of the model in a request. */
const BODY_BY_MODEL_LOCATION = {
  /** Top-level member `model` of a JSON body. Optional on some endpoints. */
  json: 'json',
  multipart: 'multipart',
  query: 'nothing',
  path: 'nothing',
  batch_entries: 'json',
  /** In a batch file that was uploaded before, named by `input_file_id` of a JSON body. */
  batch_file: 'json',
  /** In a nested member of the body, or in an object, file or socket event outside of this request. */
  elsewhere: 'nothing',
  none: 'nothing',
} as const

type ModelLocation = keyof typeof BODY_BY_MODEL_LOCATION

/** The body that SDKs send and that must be read before admission. The actual content type decides. */
type BodyReading = 'json' | 'multipart' | 'nothing'

export type UsageReader =
  | 'messages'
  | 'chat'
  | 'responses'
  | 'embeddings'
  | 'images'
  | 'speech'
  | 'transcription'
  | 'decisions'
  | 'compaction'
  | 'completions'
  | 'realtime'
  | 'batch'

/**
 * - `free`: upstream does not charge for the call.
 * - `metered`: the reply states the usage.
 * - `deferred`: the call starts work whose cost is stated later, not in this reply.
 * - `unmeterable`: the call costs money, and no reply states how much.
 * - `mints_credential`: the call gives access to upstream that bypasses the gateway and survives the revocation of
 *   our key.
 */
type Charge =
  | ({ readonly billing: 'metered'; readonly usage: UsageReader } & EndpointPricing)
  | { readonly billing: 'free' | 'deferred' | 'unmeterable' | 'mints_credential' }

/** What decides the price of an endpoint's calls besides their requests. */
export interface EndpointPricing {
  /** The kinds of models that can serve it. */
  readonly modes: readonly Mode[]
  /** Whether an answer can cost a web search that it does not state. */
  readonly hasSearchFee: boolean
  /** Whether replies state the tier that served the call. */
  readonly statesTier: boolean
  /** Maximum tokens of all inputs together; each must also fit the context window. */
  readonly inputTokensMax: number | null
}

type Template = `/v1/${string}`

interface EndpointTraits {
  readonly model: ModelLocation
  /** Whether the call shows or changes objects that are stored under the shared account. */
  readonly stateful: boolean
  /** The reader of an object of an earlier call, which the reply returns. */
  readonly shows?: UsageReader
  /** The kind of object that states the cost later. A `deferred` endpoint without it never states its cost. */
  readonly makes?: ObjectKind
  /** The protocol of a socket whose turns are metered. */
  readonly socket?: 'responses' | 'realtime'
}

type EndpointTerms = Charge & EndpointTraits & { readonly template: Template; readonly reads: BodyReading }

export type Endpoint = EndpointTerms & { readonly surface: Surface; readonly method: EndpointMethod }

/** A row of a surface's table (`messages/endpoints.ts`, `chat/endpoints.ts`): an endpoint for each method. */
export type EndpointRow = EndpointTerms & { readonly methods: readonly EndpointMethod[] }

type OneOrMoreMethods = EndpointMethod | readonly EndpointMethod[]
type Traits = Partial<EndpointTraits>

function row<B extends Charge>(billing: B, methods: OneOrMoreMethods, template: Template, traits: Traits) {
  const { model = 'none', stateful = false, ...rest } = traits
  const reads = BODY_BY_MODEL_LOCATION[model]
  return { ...billing, ...rest, methods: [methods].flat(), template, model, reads, stateful }
}

export function free(methods: OneOrMoreMethods, template: Template, traits: Traits = {}): EndpointRow {
  return row({ billing: 'free' }, methods, template, traits)
}

/** Free, but shows or changes objects of the shared upstream account. */
export function stored(methods: OneOrMoreMethods, template: Template, traits: Traits = {}): EndpointRow {
  return row({ billing: 'free' }, methods, template, { ...traits, stateful: true })
}

export function metered(
  methods: OneOrMoreMethods,
  template: Template,
  usage: UsageReader,
  {
    modes = [],
    hasSearchFee = false,
    statesTier = true,
    inputTokensMax = null,
    ...traits
  }: Traits & Partial<EndpointPricing>,
): EndpointRow {
  const pricing = { modes, hasSearchFee, statesTier, inputTokensMax }
  return row({ billing: 'metered', usage, ...pricing }, methods, template, traits)
}

/** The job, run or session that is charged later is itself a stored object. */
export function deferred(methods: OneOrMoreMethods, template: Template, traits: Traits = {}): EndpointRow {
  return row({ billing: 'deferred' }, methods, template, { ...traits, stateful: true })
}

export function unmeterable(methods: OneOrMoreMethods, template: Template, traits: Traits = {}): EndpointRow {
  return row({ billing: 'unmeterable' }, methods, template, traits)
}

/** A credential of the shared account can reach its objects, so this is always stateful. */
export function minting(methods: OneOrMoreMethods, template: Template, traits: Traits = {}): EndpointRow {
  return row({ billing: 'mints_credential' }, methods, template, { ...traits, stateful: true })
}
