import type { ObjectKind, Surface } from '../kernel/vocabulary.ts'
import type { Mode } from '../pricing/price-file.ts'

/** `WS` is a GET with an upgrade to WebSocket, which is a different endpoint than a plain GET. */
export type Method = 'GET' | 'POST' | 'DELETE' | 'WS'

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
type Billing =
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

export type Endpoint = Billing & {
  readonly surface: Surface
  readonly method: Method
  readonly template: Template
  readonly model: ModelLocation
  readonly reads: BodyReading
  readonly stateful: boolean
  readonly shows?: UsageReader
  /** The kind of object that states the cost later. A `deferred` endpoint without it never states its cost. */
  readonly makes?: ObjectKind
}

const BILLING_BY_NAME: Readonly<Record<string, readonly [Endpoint['billing'], stateful: boolean]>> = {
  free: ['free', false],
  /** Free, but shows or changes objects of the shared upstream account. */
  stored: ['free', true],
  metered: ['metered', false],
  /** The job, run or session that is charged later is itself a stored object. */
  deferred: ['deferred', true],
  unmeterable: ['unmeterable', false],
  /** A credential of the shared account can reach its objects, so this is always stateful. */
  minting: ['mints_credential', true],
}

/**
 * The endpoints of a surface from its table (`messages/endpoints.json`, `chat/endpoints.json`). A row is the methods,
 * the template, the billing and, where it applies: the location of the model, `stored` for a call on an object
 * that is stored under the shared account, `makes:<kind>` for a reply with an object whose cost comes later,
 * `shows:<reader>` for a reply that returns an object of an earlier call. A metered row also has the modes of the models
 * that can serve it (`modes:<mode>,…`) and, where they apply, `search_fee`, `unstated_tier` and `input_tokens:<maximum>`
 * (see EndpointPricing). Rows that begin with `#` are comments.
 */
export function readEndpoints(surface: Surface, table: readonly string[]): Endpoint[] {
  return table.filter((row) => row !== '' && !row.startsWith('#')).flatMap((row) => readRow(surface, row))
}

function readRow(surface: Surface, row: string): Endpoint[] {
  const cells = row.split(' ')
  const templateAt = cells.findIndex((cell) => cell.startsWith('/v1/'))
  const [template, billingName = '', ...flags] = cells.slice(templateAt)
  const fields: Record<string, unknown> = { model: 'none' }
  if (billingName === 'metered')
    Object.assign(fields, {
      usage: flags.shift(),
      modes: [],
      hasSearchFee: false,
      statesTier: true,
      inputTokensMax: null,
    })
  for (const cell of flags) {
    const [name = '', value] = cell.split(':')
    if (Object.hasOwn(BODY_BY_MODEL_LOCATION, cell)) fields['model'] = cell
    else if (name === 'shows' || name === 'makes') fields[name] = value
    else if (name === 'modes') fields['modes'] = value?.split(',')
    else if (name === 'input_tokens') fields['inputTokensMax'] = Number(value)
    else if (cell === 'search_fee') fields['hasSearchFee'] = true
    else if (cell === 'unstated_tier') fields['statesTier'] = false
    else if (cell !== 'stored') fields['invalid'] = cell
  }
  const billing = BILLING_BY_NAME[billingName]
  if (templateAt < 1 || billing === undefined || 'invalid' in fields)
    throw new TypeError(`This row of the ${surface} endpoints cannot be read: ${row}`)
  fields['billing'] = billing[0]
  fields['stateful'] = billing[1] || flags.includes('stored')
  fields['reads'] = BODY_BY_MODEL_LOCATION[fields['model'] as ModelLocation]
  return cells.slice(0, templateAt).map((method) => ({ surface, method, template, ...fields }) as Endpoint)
}
