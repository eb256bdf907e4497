import type { Histogram } from '../kernel/histogram.ts'
import type { Admission, CallClosing, CallOpening, Settled } from '../ledger/call.ts'
import { ACCOUNTS } from './operations/accounts.ts'
import { ADMIN_KEYS } from './operations/admin-keys.ts'
import { BILL_FACTS } from './operations/bill-facts.ts'
import { CREDITS } from './operations/credits.ts'
import { DEFERRED } from './operations/deferred.ts'
import { DEVICES } from './operations/devices.ts'
import { EVENTS } from './operations/events.ts'
import { LOOKUPS } from './operations/key-lookup.ts'
import { KEYS } from './operations/keys.ts'
import { MEMBERS } from './operations/members.ts'
import type { Methods } from './operations/operation.ts'
import { PEOPLE } from './operations/people.ts'
import { PERSON_CHECKS } from './operations/person-checks.ts'
import { PERSON_KEYS } from './operations/person-keys.ts'
import { PRICES } from './operations/prices.ts'
import { REQUEST_LOG } from './operations/request-log.ts'
import { RERATES } from './operations/rerate.ts'
import { RETENTION } from './operations/retention.ts'
import { SETTINGS } from './operations/settings.ts'
import { USAGE } from './operations/usage.ts'
import { WEBHOOKS } from './operations/webhooks.ts'

/** Operations that use a few rows. SQLite's writer thread runs them between batches of calls. */
export const BRIEF = {
  ...ACCOUNTS.brief,
  ...ADMIN_KEYS.brief,
  ...BILL_FACTS.brief,
  ...CREDITS.brief,
  ...DEFERRED.brief,
  ...DEVICES.brief,
  ...EVENTS.brief,
  ...KEYS.brief,
  ...LOOKUPS.brief,
  ...MEMBERS.brief,
  ...PEOPLE.brief,
  ...PERSON_CHECKS.brief,
  ...PERSON_KEYS.brief,
  ...PRICES.brief,
  ...REQUEST_LOG.brief,
  ...RERATES.brief,
  ...RETENTION.brief,
  ...SETTINGS.brief,
  ...WEBHOOKS.brief,
}

/** Operations that may read many rows: no admission waits for them. */
export const READS = {
  ...ACCOUNTS.reads,
  ...ADMIN_KEYS.reads,
  ...CREDITS.reads,
  ...DEFERRED.reads,
  ...EVENTS.reads,
  ...KEYS.reads,
  ...PEOPLE.reads,
  ...PRICES.reads,
  ...REQUEST_LOG.reads,
  ...RERATES.reads,
  ...USAGE.reads,
  ...WEBHOOKS.reads,
}

/** Operations on refused calls: brief on SQLite, but separate from other operations on PostgreSQL. */
export const REFUSED = REQUEST_LOG.refused

/** Operations on bodies, for which SQLite has a separate file and thread. */
export const BODIES = REQUEST_LOG.bodies

/** One method per operation, each one transaction. Ids of other accounts are not found. */
export interface Store extends Methods<typeof BRIEF & typeof REFUSED & typeof READS & typeof BODIES> {
  /** Checks key, models, price, caps and credit, and places the hold durably before a byte goes upstream. */
  admit(opening: CallOpening): Promise<Admission>
  /** Closes the call's hold, once, and adds its cost to the key's month, the balance and the day's rollup. */
  settle(closing: CallClosing): Promise<Settled>
  /** Closes every open call of a process that crashed as interrupted. Returns their number. */
  interruptOpenCalls(atMs: number): Promise<number>
  readonly load: StoreLoad
  close(): Promise<void>
}

export interface StoreLoad {
  readonly batchCalls: Histogram
  /** Duration of these transactions: on SQLite mainly the fsync, on PostgreSQL the round trip and locks. */
  readonly commitSeconds: Histogram
  readonly waiting: number
  readonly events: ReadonlyMap<string, number>
}
