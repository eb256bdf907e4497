import type { Nanos } from '../kernel/money.ts'
import type { Balance } from './ledger-store.ts'

/** What the first page of the dashboard shows of an account, in one look. */

export interface OverviewQuery {
  readonly accountId: string
  readonly atMs: number
  /** Keys and models that are named of each kind; all are counted. */
  readonly namedMax: number
}

/** A key that needs a look. */
export interface AttentionKey {
  readonly id: string
  readonly name: string
  readonly capNanos: Nanos | null
  readonly spentNanos: Nanos
  readonly expiresAtMs: number | null
}

export interface AttentionKeys {
  readonly count: number
  readonly keys: readonly AttentionKey[]
}

export interface Overview {
  /** Such as "2026-11": the sums are of its calls up to now. */
  readonly month: string
  readonly requests: bigint
  readonly costNanos: Nanos
  readonly listNanos: Nanos
  readonly creditedNanos: Nanos
  readonly balance: Balance
  /** At least four fifths of the cap are spent, but not all of it. A cap of 0 is meant to let nothing through. */
  readonly nearCap: AttentionKeys
  readonly exhausted: AttentionKeys
  /** Within a week. */
  readonly expiring: AttentionKeys
  /** In the last seven days. */
  readonly unpricedModels: readonly { readonly model: string; readonly requests: bigint }[]
  /** Of webhooks: deliveries of the last 24 hours that were given up, and endpoints that were disabled for failing. */
  readonly failedDeliveries: number
  readonly disabledWebhooks: number
  /** In the last 24 hours. */
  readonly refusals: readonly { readonly code: string; readonly calls: bigint }[]
}

export interface OverviewStore {
  readOverview(query: OverviewQuery): Promise<Overview>
}
