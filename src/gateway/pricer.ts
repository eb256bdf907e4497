import type { Nanos } from '../kernel/money.ts'
import type { Usage } from '../kernel/usage.ts'
import type { Hold, Unratable } from '../ledger/call.ts'
import type { RequestFacts } from '../metering/request-facts.ts'
import type { Endpoint, Surface } from '../providers/endpoint.ts'

/** What has to be known of a call to say what it may cost. */
export interface PlannedCall {
  readonly surface: Surface
  readonly method: string
  readonly path: string
  readonly endpoint: Endpoint | null
  readonly facts: RequestFacts
  readonly modelAsked: string | null
  /** Of the decoded body. */
  readonly bodyBytes: number
  /** The body, where it is at hand and not encoded. Its pieces are joined for whoever asks. */
  body(): Buffer | null
  readonly atMs: number
}

/** How a call will be rated, decided before it goes and kept with it: a price that changes meanwhile changes nothing. */
export interface BillPlan {
  readonly hold: Hold
  readonly priceVersion: string
  /** All that rating needs besides the usage, as JSON. */
  readonly rating: string
  readonly unratable: Unratable | null
  /** The model that has no price, where that is why the call cannot be rated. */
  readonly unpricedModel: string | null
  /** Whether what upstream answers costs anything; free endpoints need no meter. */
  readonly metered: boolean
  /** The context window of the model asked for, where it is known. */
  readonly inputTokensMax: number | null
  /** The model that the call goes by because the request names none, and nothing stored may bring another. */
  readonly modelDefault: string | null
  /** The usage of an answered call with the fees that its reply does not state. */
  withFees(usage: Usage): Usage
  rate(usage: Usage): RatedCall
}

export interface RatedCall {
  readonly costNanos: Nanos
  readonly listNanos: Nanos
  readonly unpriced: boolean
  readonly pricedAsRequested: boolean
}

/** Knows the prices in force. */
export interface Pricer {
  plan(call: PlannedCall): BillPlan
}
