import type { Nanos } from '../kernel/money.ts'
import type { UsageDimension } from '../kernel/vocabulary.ts'
import type { Metadata } from '../keys/key-store.ts'
import type { Balance } from './account.ts'

/** Usage is read from daily sums that settlement updates, so its cost does not grow with the number of calls. */

export interface UsageQuery {
  /** Null: all accounts. */
  readonly accountId: string | null
  /** One key's usage only, or null for the whole account's. */
  readonly keyId: string | null
  /** One model alone, under the name that buckets have. */
  readonly model?: string | undefined
  /** UTC dates, both inclusive. */
  readonly startDay: string
  readonly endDay: string
  /** An empty list gives one bucket over everything. */
  readonly groupBy: readonly UsageDimension[]
  /** Only buckets that come after this one. */
  readonly after: UsageGroup | null
  readonly limit: number
}

/** The group of a bucket. A dimension that the query does not group by is null. */
export interface UsageGroup {
  readonly day: string | null
  /** The model served, else the model asked for; empty where there was neither. */
  readonly model: string | null
  readonly keyId: string | null
  /** Null where the query does not group by account. */
  readonly ofAccountId: string | null
}

/** Sums can pass what a double holds, so all of them are bigint. */
export interface UsageSums {
  readonly requests: bigint
  readonly inputTokens: bigint
  readonly outputTokens: bigint
  readonly cacheReadTokens: bigint
  readonly cacheWriteTokens: bigint
  readonly costNanos: Nanos
  readonly listNanos: Nanos
  readonly creditedNanos: Nanos
  readonly unpricedRequests: bigint
  readonly estimatedRequests: bigint
}

export interface UsageBucket extends UsageGroup, UsageSums {
  readonly keyName: string | null
  readonly accountName: string | null
  /** The metadata of the key; null if the query does not group by key. */
  readonly metadata: Metadata | null
}

export interface UsageReport {
  /** Buckets in the order of day, model and key id. */
  readonly buckets: readonly UsageBucket[]
  readonly more: boolean
  /** Over the whole query, not only this page. */
  readonly total: UsageSums
}

/** The figures of an account on the first page of the dashboard, in one query. */

export interface OverviewQuery {
  readonly accountId: string
  readonly atMs: number
  /** The most keys and models that are named of each kind; all are counted. */
  readonly namedMax: number
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
  /** Keys that have spent at least four fifths of a cap, of the month or of the day, but not all. A cap of 0 is meant to let nothing through. */
  readonly nearCap: AttentionKeys
  readonly exhausted: AttentionKeys
  readonly expiring: AttentionKeys
  readonly unpricedModels: readonly { readonly model: string; readonly requests: bigint }[]
  /** Deliveries of the last 24 hours that failed for good, and webhooks that were disabled for failing or being gone. */
  readonly failedDeliveries: number
  readonly disabledWebhooks: number
  /** Refused calls of the last 24 hours, by code. */
  readonly refusals: readonly { readonly code: string; readonly calls: bigint }[]
}
