/** The gateway's public API, with the session's cookie in place of an admin key. */

export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly param: string | null
  readonly requestId: string | null

  constructor(status: number, code: string, message: string, param: string | null, requestId: string | null) {
    super(message)
    this.status = status
    this.code = code
    this.param = param
    this.requestId = requestId
  }
}

let csrfToken = ''
let onEnded: () => void = () => {}

/** `ended` is called when an answer says that there is no session any more. */
export function useSession(token: string, ended: () => void): void {
  csrfToken = token
  onEnded = ended
}

export interface Answer<T> {
  readonly value: T
  readonly etag: string | null
}

/** Resolves with null where the answer is not modified since the ETag. */
export async function fetchAnswer<T>(
  method: string,
  path: string,
  { body, signal, etag }: { body?: unknown; signal?: AbortSignal; etag?: string | null } = {},
): Promise<Answer<T> | null> {
  const headers: Record<string, string> = {}
  if (body !== undefined) headers['content-type'] = 'application/json'
  if (method !== 'GET') headers['x-csrf-token'] = csrfToken
  if (etag) headers['if-none-match'] = etag
  let response: Response
  try {
    response = await fetch(path, {
      method,
      headers,
      cache: 'no-store',
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    })
  } catch (error) {
    if (signal?.aborted) throw error
    throw new ApiError(0, 'unreachable', 'The gateway does not answer. Is it running?', null, null)
  }
  if (response.status === 304) return null
  const text = await response.text()
  if (!response.ok) throw errorOf(response, text)
  return { value: (text === '' ? null : JSON.parse(text)) as T, etag: response.headers.get('etag') }
}

function errorOf(response: Response, text: string): ApiError {
  const { status } = response
  const id = [...response.headers].find(([name]) => name.endsWith('-request-id'))?.[1] ?? null
  let error: { code?: string; message?: string; param?: string | null } = {}
  try {
    error = JSON.parse(text).error ?? {}
  } catch {
    // The answer came from a proxy between the page and the gateway, and has no error object: the status has to do.
  }
  if (status === 401 && csrfToken !== '') onEnded()
  return new ApiError(
    status,
    error.code ?? `http_${status}`,
    error.message ?? `HTTP ${status}`,
    error.param ?? null,
    id,
  )
}

export async function send<T>(method: string, path: string, body?: unknown): Promise<T> {
  const answer = await fetchAnswer<T>(method, path, body === undefined ? {} : { body })
  return (answer as Answer<T>).value
}

export interface ListOf<T> {
  readonly data: readonly T[]
  readonly has_more: boolean
  readonly next: string | null
}

export interface Session {
  readonly expires_at: string
  readonly csrf_token: string
}

export interface Key {
  readonly id: string
  readonly name: string
  readonly prefix: string
  readonly last4: string
  readonly status: 'usable' | 'revoked' | 'expired'
  readonly monthly_budget_usd: number | null
  readonly month_spend_usd: number
  readonly month_held_usd: number
  readonly month_waiting: number
  readonly month_lost_usd: number
  readonly budget_resets_at: string
  readonly allowed_models: readonly string[] | null
  readonly log_requests: boolean
  readonly expires_at: string | null
  readonly created_at: string
  readonly revoked_at: string | null
  readonly last_used_at: string | null
  readonly rotated_from: string | null
}

export interface NewKey extends Key {
  readonly key: string
}

export interface Call {
  readonly id: string
  readonly key_id: string
  readonly state: 'waiting' | 'in_flight' | 'deferred' | 'settled' | 'released' | 'interrupted' | 'refused'
  /** The object that the call made upstream and whose cost comes later. */
  readonly object_id: string | null
  /** The batch of which this record is the part of one model. */
  readonly parent_id: string | null
  /** The handshake of the WebSocket on which the call is a turn; of a handshake its own id. */
  readonly socket_id: string | null
  readonly started_at: string
  readonly ended_at: string | null
  readonly method: string
  readonly path: string
  readonly surface: 'messages' | 'chat' | null
  readonly model: string | null
  readonly model_served: string | null
  readonly status: number | null
  readonly stop_reason: string | null
  readonly streamed: boolean
  readonly estimated: boolean
  readonly unpriced: boolean
  readonly overrun: boolean
  readonly priced_as_requested: boolean
  /** Null while the usage is not known. */
  readonly usage: Tokens | null
  readonly cost_usd: number
  readonly list_cost_usd: number
  readonly lost_list_cost_usd: number
  readonly balance_usd: number | null
  readonly upstream_ms: number | null
  readonly overhead_ms: number | null
  readonly price_version: string | null
  readonly upstream_request_id: string | null
  readonly client_ip: string | null
  readonly user_agent: string | null
  readonly bytes_in: number
  readonly bytes_out: number
  readonly credited: boolean
  readonly code: string | null
}

export interface Tokens {
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cache_read_tokens: number
  readonly cache_write_tokens: number
}

export interface Bucket extends Tokens {
  readonly day?: string
  readonly model?: string
  readonly key?: string
  readonly key_name?: string
  readonly requests: number
  readonly cost_usd: number
  readonly list_cost_usd: number
  readonly savings_usd: number
  readonly credited_usd: number
  readonly unpriced_requests: number
  readonly estimated_requests: number
}

export interface Usage extends ListOf<Bucket> {
  readonly start: string
  readonly end: string
  readonly total: Bucket
}

export interface Balance {
  readonly balance_usd: number
  readonly held_usd: number
  readonly credited_usd: number
  readonly charged_usd: number
  readonly enforced: boolean
}

export interface Overview {
  readonly requests: number
  readonly cost_usd: number
  readonly list_cost_usd: number
  readonly savings_usd: number
  readonly balance: Balance
  readonly calls_in_flight: number
  readonly calls_waiting: number
  readonly attention: {
    readonly keys_exhausted: Named<KeyName>
    readonly keys_near_cap: Named<KeyName & { readonly percent: number }>
    readonly keys_expiring: Named<KeyName & { readonly expires_at: string }>
    readonly unpriced_models: readonly { readonly model: string; readonly requests: number }[]
    readonly refusals: readonly { readonly code: string; readonly calls: number }[]
    readonly webhooks_failed_deliveries: number
    readonly webhooks_disabled: number
  }
}

/** `count` counts all items; `data` names some of them. */
interface Named<T> {
  readonly count: number
  readonly data: readonly T[]
}

interface KeyName {
  readonly id: string
  readonly name: string
}

export interface PriceBook {
  readonly price_version: string
  readonly overlay: string | null
  readonly upcoming: readonly { readonly price_version: string; readonly effective_from: string | null }[]
  readonly models: readonly PricedModel[]
}

export interface PricedModel {
  readonly id: string
  readonly provider: string
  readonly mode: string
  readonly aliases: readonly string[]
  readonly retired: boolean
  readonly source: 'list' | 'overlay'
  readonly context_window_tokens: number | null
  readonly max_output_tokens: number | null
  readonly prices: { readonly rates?: Readonly<Record<string, Readonly<Record<string, unknown>>>> }
}

/** The events in the order in which the form offers them; a test compares them with the gateway's. */
export const WEBHOOK_EVENTS = [
  'key.budget.threshold',
  'key.budget.exceeded',
  'balance.low',
  'balance.exhausted',
  'key.created',
  'key.updated',
  'key.rotated',
  'key.revoked',
  'key.expired',
  'key.expiring',
  'call.unpriced',
  'webhook.disabled',
] as const

export interface Webhook {
  readonly id: string
  readonly url: string
  readonly events: readonly string[]
  readonly description: string
  readonly format: 'standard' | 'slack'
  readonly enabled: boolean
  readonly disabled_reason: string | null
  readonly created_at: string
  readonly last_delivery_at: string | null
  readonly last_status: number | null
}

export interface Delivery {
  readonly id: string
  readonly event_id: string
  readonly event_type: string
  readonly status: 'pending' | 'succeeded' | 'failed'
  readonly attempts: number
  readonly response_status: number | null
  /** Why the last attempt failed. */
  readonly error: string | null
  readonly last_attempt_at: string | null
  readonly next_attempt_at: string | null
  readonly created_at: string
}

export interface Bill {
  readonly price_version: string | null
  readonly lines: readonly BillLine[]
  readonly rounding_usd: number
  readonly list_cost_usd: number | null
  readonly discount_usd: number | null
  readonly cost_usd: number | null
  readonly held_usd: number
  readonly held_because: string
  readonly note: string | null
}

export interface BillLine {
  readonly label: string
  readonly model: string
  readonly quantity: number
  readonly rate_usd: number
  /** How many units the rate buys. */
  readonly rate_per: number
  readonly modifiers: readonly string[]
  readonly amount_usd: number
  /** The fraction of the amount that is not billed. */
  readonly discount: number
}
