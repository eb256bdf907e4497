import type { Nanos } from '../kernel/money.ts'
import type { Surface } from '../kernel/surface.ts'
import type { Usage } from '../kernel/usage.ts'
import type { Hold, Unratable } from '../ledger/call.ts'
import type { RequestFacts } from '../metering/request-facts.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import type { UnseenWork } from '../providers/unseen-work.ts'

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
  /** The member of the request without which its endpoint could be metered, where that is why it cannot. */
  readonly unmeteredMember: string | null
  /** Whether what upstream answers costs anything; free endpoints need no meter. */
  readonly metered: boolean
  /** Whether what upstream does not say is counted. Else a reply that states no usage has no cost. */
  readonly counts: boolean
  /** What the reply will not show as it goes. Made when it is asked for: few calls are cut. */
  unseen(): UnseenWork
  /** The two sides of the hold in tokens, by the limits of the model that served, or else was asked for. */
  tokensHeld(modelServed: string | null): TokensHeld
  /** The model that the call goes by because the request names none, and nothing stored may bring another. */
  readonly modelDefault: string | null
  /** What the request asks for and upstream may not have said when the call is cut. */
  readonly asked: { readonly serviceTier: string | null; readonly speed: string | null }
  /** The usage of an answered call with the fees that its reply does not state. */
  withFees(usage: Usage): Usage
  rate(usage: Usage): RatedCall
}

/** Null where nothing limits them. */
export interface TokensHeld {
  readonly input: number | null
  readonly output: number | null
  /** No model reads more than its context window. */
  readonly contextWindow: number | null
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
