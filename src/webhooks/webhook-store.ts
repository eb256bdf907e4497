import type { Idempotency, IdempotentResult } from '../kernel/idempotency.ts'
import type { Nanos } from '../kernel/money.ts'
import type { DeliveryStatus, DisabledReason, WebhookFormat } from '../kernel/vocabulary.ts'
import type { KeyRecord, Page } from '../keys/key-store.ts'
import type { Balance } from '../ledger/ledger-store.ts'

/**
 * The records that the store keeps for webhooks, and the port through which they are kept.
 *
 * The transaction that causes an event writes a row of the **outbox**, if the account has an endpoint that is enabled. One
 * node at a time, by a **lease**, relays the rows: `readOutbox` gives them in their order, completed with the records they
 * are about, the caller makes the payload's text of each (the JSON form of a key is the management API's, and the store
 * knows nothing of it), and `keepEvents` puts the event and one delivery per subscribed endpoint in the place of the
 * outbox row, in one transaction. Ids of events and deliveries are made there. Deliveries are then claimed and recorded
 * per endpoint, under a lease of that endpoint. Instants are milliseconds (UTC) by the clock of the store; `atMs` is the
 * caller's, which counts where the store has none.
 */

/** `webhook.test` is sent on demand only: no endpoint subscribes to it. */
export const WEBHOOK_TEST = 'webhook.test'

/** An endpoint, without its secret. */
export interface WebhookRecord {
  readonly id: string
  readonly accountId: string
  readonly url: string
  /** Names of events, or `*` alone. */
  readonly events: readonly string[]
  readonly description: string
  readonly format: WebhookFormat
  readonly enabled: boolean
  readonly disabledReason: DisabledReason | null
  readonly createdAtMs: number
  /** The instant of the last attempt at a delivery, and the status of its answer; null where no answer came. */
  readonly lastDeliveryAtMs: number | null
  readonly lastStatus: number | null
}

export interface NewWebhook {
  readonly id: string
  readonly accountId: string
  readonly url: string
  readonly events: readonly string[]
  readonly description: string
  readonly format: WebhookFormat
  /** The sealed secret: the store cannot read it. */
  readonly secret: Uint8Array
  readonly createdAtMs: number
}

/** `too_many`: the account has `limits.webhooksMax` endpoints, and nothing was made. */
export type WebhookCreation = IdempotentResult<WebhookRecord> | { readonly kind: 'too_many' }

/** The members that an edit may change; absent members stay. Enabling forgets the reason and the failures from before. */
export type WebhookChanges = Partial<
  Pick<WebhookRecord, 'url' | 'events' | 'description' | 'format' | 'enabled'>
>

/** `too_soon`: so many former secrets still sign that none may be added before `untilMs`. */
export type SecretRotation =
  | IdempotentResult<WebhookRecord>
  | { readonly kind: 'too_soon'; readonly untilMs: number }
  | { readonly kind: 'none' }

export interface WebhookQuery {
  readonly accountId: string
  /** Only endpoints that come after this id in the list. */
  readonly after: string | null
  readonly limit: number
}

export interface DeliveryRecord {
  readonly id: string
  readonly webhookId: string
  readonly eventId: string
  readonly eventType: string
  readonly status: DeliveryStatus
  readonly attempts: number
  readonly responseStatus: number | null
  /** Why the last attempt failed; null after a success, and before the first. */
  readonly error: string | null
  readonly lastAttemptAtMs: number | null
  /** Null when there will be no further attempt. */
  readonly nextAttemptAtMs: number | null
  readonly createdAtMs: number
}

export interface DeliveryQuery {
  readonly accountId: string
  readonly webhookId: string
  readonly status: DeliveryStatus | null
  readonly after: string | null
  readonly limit: number
}

/**
 * `disabled`: nothing is sent to this endpoint until it is enabled. A delivery that is still pending is made due at once;
 * for any other delivery a new one of the same event is made.
 */
export type Redelivery =
  | IdempotentResult<DeliveryRecord>
  | { readonly kind: 'disabled' }
  | { readonly kind: 'none' }

/** A key as a payload shows it: the record, and the instant at which the record was read. */
export interface ToldKey {
  readonly record: KeyRecord
  readonly atMs: number
}

/** The month with the call that crossed the threshold. It may be a past month: a call counts for the month of its admission. */
export interface ToldBudget {
  /** 100 for `key.budget.exceeded`. */
  readonly percent: number
  readonly spentNanos: Nanos
  readonly heldNanos: Nanos
  readonly capNanos: Nanos
  readonly month: string
  readonly resetsAtMs: number
  /** The call that crossed the threshold; null where an edit of the cap did. */
  readonly requestId: string | null
}

type Told =
  | {
      readonly type: 'key.created' | 'key.updated' | 'key.revoked' | 'key.expired'
      readonly key: ToldKey
    }
  | { readonly type: 'key.expiring'; readonly key: ToldKey; readonly days: number }
  | { readonly type: 'key.rotated'; readonly key: ToldKey; readonly oldKey: ToldKey }
  | {
      readonly type: 'key.budget.threshold' | 'key.budget.exceeded'
      readonly key: ToldKey
      readonly budget: ToldBudget
    }
  | { readonly type: 'balance.low' | 'balance.exhausted'; readonly balance: Balance }
  | { readonly type: 'call.unpriced'; readonly model: string | null; readonly requestId: string }
  | { readonly type: 'webhook.disabled'; readonly webhook: WebhookRecord }

/** A row of the outbox with all that its payload is made of. `atMs` is the payload's `timestamp`. */
export type OutboxEvent = Told & {
  readonly sequence: bigint
  readonly accountId: string
  readonly atMs: number
}

/** A row of the outbox that cannot be read. Its event is given up. */
export interface UnreadableEvent {
  readonly sequence: bigint
  readonly type: string
  /** Why it cannot be read. */
  readonly unreadable: string
}

/** The text that is sent, and signed, for each delivery of an event. At most `limits.webhookPayloadBytesMax` bytes. */
export interface EventPayload {
  readonly sequence: bigint
  /** Null: the row could not be read or its payload not rendered, and the event is given up. */
  readonly payload: string | null
}

/** An endpoint with the secrets that sign its deliveries. */
export interface DeliveryTarget extends WebhookRecord {
  readonly secret: Uint8Array
  /** Former secrets that still sign, the latest first. */
  readonly formerSecrets: readonly Uint8Array[]
}

export interface ClaimedDelivery {
  readonly id: string
  readonly eventId: string
  readonly eventType: string
  readonly payload: string
  /** Attempts before this one, since the delivery was queued or redelivered. */
  readonly attempts: number
}

export interface ClaimedDeliveries {
  readonly target: DeliveryTarget
  readonly deliveries: readonly ClaimedDelivery[]
}

/** The outcome of one attempt. */
export interface DeliveryAttempt {
  readonly id: string
  /** The address that was tried. An endpoint that has moved since is tried again, and not blamed for a failure there. */
  readonly url?: string
  /** Null if no answer came. */
  readonly responseStatus: number | null
  /** Why the attempt failed, cut to a line; null if it did not. */
  readonly error: string | null
  readonly outcome:
    | { readonly kind: 'succeeded' }
    /** The pause until the retry, from now on. */
    | { readonly kind: 'retry'; readonly inMs: number }
    /** There is no further attempt. */
    | { readonly kind: 'failed' }
    /** 410: the endpoint is disabled. */
    | { readonly kind: 'gone' }
}

/** `lost`: another node has the lease, and nothing was recorded. */
export type Recorded = 'recorded' | 'lost'

/** `target` is the endpoint as it is now, null if it is deleted or disabled: deliveries not sent yet go by that. */
export type RecordedAttempts =
  | { readonly kind: 'lost' }
  | { readonly kind: 'recorded'; readonly target: DeliveryTarget | null }

/** Each method is one transaction. Ids are looked up within the account: ids of other accounts are not found. */
export interface WebhookStore {
  createWebhook(webhook: NewWebhook, idempotency: Idempotency | null): Promise<WebhookCreation>
  getWebhook(accountId: string, id: string): Promise<WebhookRecord | null>
  listWebhooks(query: WebhookQuery): Promise<Page<WebhookRecord>>
  updateWebhook(
    accountId: string,
    id: string,
    changes: WebhookChanges,
    atMs: number,
  ): Promise<WebhookRecord | null>
  /** Deletes an endpoint; its deliveries are not found any more. Returns whether there was one. */
  deleteWebhook(accountId: string, id: string): Promise<boolean>
  /** The former secret signs as well for `limits.webhookOldSecretMs`, and earlier ones to the end of their own time. */
  rotateWebhookSecret(
    accountId: string,
    id: string,
    secret: Uint8Array,
    atMs: number,
    idempotency: Idempotency | null,
  ): Promise<SecretRotation>

  listDeliveries(query: DeliveryQuery): Promise<Page<DeliveryRecord>>
  redeliver(
    accountId: string,
    webhookId: string,
    deliveryId: string,
    atMs: number,
    idempotency: Idempotency | null,
  ): Promise<Redelivery>
  /** Queues an event of the type `webhook.test` for this endpoint alone. */
  queueTest(
    accountId: string,
    webhookId: string,
    payload: string,
    atMs: number,
    idempotency: Idempotency | null,
  ): Promise<Redelivery>

  /** The percents of a cap that `key.budget.threshold` is told at, for all nodes, from the next settlement on. */
  setBudgetThresholds(percents: readonly number[]): Promise<void>
  /** The balance below which `balance.low` is told, in the same way; null: never. */
  setBalanceLow(nanos: Nanos | null): Promise<void>

  /**
   * Takes the lease of the relay, or keeps it, and gives the oldest rows of the outbox, at most `limits.webhookRelayMax`.
   * Null: another node has the lease. `holder` names this process and no other.
   */
  readOutbox(holder: string, atMs: number): Promise<readonly (OutboxEvent | UnreadableEvent)[] | null>
  /** Puts events and deliveries in the place of rows that `readOutbox` gave. */
  keepEvents(holder: string, events: readonly EventPayload[], atMs: number): Promise<Recorded>
  /**
   * The sweep finds events that no call causes, and writes them into the outbox: keys that expire, and a balance that is low
   * though no call has made it so. To be called every few seconds by the holder of the relay's lease; if all nodes were off,
   * events of that time are told later. True: there is more to look at.
   */
  sweepEvents(holder: string, atMs: number): Promise<boolean>
  /** Deletes some rows that are too old, and gives up deliveries queued for disabled endpoints. Rows done: 0 is the end. */
  pruneWebhooks(holder: string, atMs: number): Promise<number>

  /**
   * Enabled endpoints that have deliveries due and that no other node holds, the longest due first. The leases of the
   * endpoints in the answer are taken.
   */
  claimWebhooks(holder: string, limit: number, atMs: number): Promise<readonly string[]>
  /**
   * The oldest deliveries of an endpoint that are due, at most `limits.webhookClaimMax`, and all that is needed to send them.
   * Takes the lease of the endpoint or keeps it. Null: another node has the lease, or the endpoint is not enabled any more.
   */
  claimDeliveries(holder: string, webhookId: string, atMs: number): Promise<ClaimedDeliveries | null>
  /** Keeps the lease of an endpoint while deliveries are under way. A lease lasts `limits.webhookLeaseMs`. */
  keepWebhookLease(holder: string, webhookId: string, atMs: number): Promise<boolean>
  /**
   * Records attempts at claimed deliveries, but for failures at a former address. An endpoint that says it is gone, or that
   * has had nothing but failures for five days, is disabled, and the other endpoints are told so. With `release` the lease
   * ends.
   */
  recordAttempts(
    holder: string,
    webhookId: string,
    attempts: readonly DeliveryAttempt[],
    release: boolean,
    atMs: number,
  ): Promise<RecordedAttempts>
  /** Releases the leases of a process at its end, so that other nodes need not wait for them to run out. */
  releaseLeases(holder: string): Promise<void>

  /** The numbers of waiting rows, for metrics. */
  countWaiting(): Promise<{ readonly outbox: number; readonly deliveries: number }>
}
