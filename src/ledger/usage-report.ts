import type { Nanos } from '../kernel/money.ts'
import type { UsageDimension } from '../kernel/vocabulary.ts'
import type { Metadata } from '../keys/key-store.ts'
import type { Balance } from './account.ts'

/**
 * Usage is read from daily sums that settlement updates, so its cost does not grow with the number of calls. Only hours
 * are computed from the calls of a few days.
 */

export interface UsageQuery {
  /** Null: all accounts. */
  readonly accountId: string | null
  /** Null: the whole account. */
  readonly keyId: string | null
  /** The keys of this person. */
  readonly personId?: string | null
  readonly model?: string | undefined
  /** UTC dates, both inclusive. */
  readonly startDay: string
  readonly endDay: string
  /** The dimensions. With an empty list, there is one bucket for everything. */
  readonly groupBy: readonly UsageDimension[]
  /** Only buckets that come after this one. */
  readonly after: UsageGroup | null
  readonly limit: number
}

/** The group of a bucket. A dimension that the query does not group by is null. */
export interface UsageGroup {
  readonly day: string | null
  /** Its start, in ISO 8601. */
  readonly hour: string | null
  /** The served model, else the requested one; empty if there is neither. */
  readonly model: string | null
  readonly keyId: string | null
  /** Null for the keys of services too. */
  readonly personId: string | null
  /** Null where the query does not group by account. */
  readonly ofAccountId: string | null
}

export const USAGE_SUMS = [
  ...(['requests', 'inputTokens', 'outputTokens', 'cacheReadTokens', 'cacheWriteTokens'] as const),
  ...(['costNanos', 'listNanos', 'creditedNanos', 'unpricedRequests', 'estimatedRequests'] as const),
]

/** Bigint, because sums can exceed the exact range of doubles. */
export type UsageSums = Readonly<Record<(typeof USAGE_SUMS)[number], bigint>>

export interface UsageBucket extends UsageGroup, UsageSums {
  readonly keyName: string | null
  readonly personEmail: string | null
  readonly accountName: string | null
  /** Null if the query does not group by key. */
  readonly metadata: Metadata | null
}

export interface UsageReport {
  /** Buckets in the order of day, model and key id. */
  readonly buckets: readonly UsageBucket[]
  readonly more: boolean
  /** The sums over all pages of the query. */
  readonly total: UsageSums
}

/** The figures of an account on the first page of the dashboard, in one query. */

export interface OverviewQuery {
  readonly accountId: string
  readonly atMs: number
  /** Maximum number of keys and models in each list. The counts include all. */
  readonly listedMax: number
}

export interface AttentionKey {
  readonly id: string
  readonly name: string
  readonly period: 'month' | 'day'
  readonly capNanos: Nanos | null
  readonly spentNanos: Nanos
  readonly expiresAtMs: number | null
}

export interface AttentionKeys {
  readonly count: number
  readonly keys: readonly AttentionKey[]
}

export interface Overview {
  /** The month of the sums, such as "2026-11", up to now. */
  readonly month: string
  readonly requests: bigint
  readonly costNanos: Nanos
  readonly listNanos: Nanos
  readonly creditedNanos: Nanos
  readonly balance: Balance
  readonly inFlight: number
  /** At least 80 % of a cap is spent, but not all. Caps of 0 are left out: they are meant to refuse everything. */
  readonly nearCap: AttentionKeys
  readonly exhausted: AttentionKeys
  readonly expiring: AttentionKeys
  readonly unpricedModels: readonly { readonly model: string; readonly requests: number }[]
  /** Deliveries of the last 24 hours that failed for good, and webhooks that were disabled by failures or a 410. */
  readonly failedDeliveries: number
  readonly disabledWebhooks: number
  /** Refused calls of the last 24 hours, by code. */
  readonly refusals: readonly { readonly code: string; readonly calls: number }[]
}
