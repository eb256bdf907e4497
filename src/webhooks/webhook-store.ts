import type { Actor } from '../kernel/actor.ts'
import { parseWithDigits, rawNumber } from '../kernel/money.ts'
import type { DeliveryStatus, DisabledReason, EventType, WebhookFormat } from '../kernel/vocabulary.ts'
import type { ListQuery } from '../keys/key-store.ts'

/** Times are milliseconds (UTC) by the database's clock. `atMs` is the caller's clock, which SQLite uses. */

export interface EventRecord {
  readonly id: string
  readonly accountId: string
  readonly type: EventType
  readonly createdAtMs: number
  readonly actor: Actor
  readonly dataJson: string
}

/** Only operators see upstreams and metadata. Numbers stay as written: a double cannot hold every amount. */
export function readEventData({ type, dataJson }: EventRecord, isForOperator: boolean): unknown {
  const hidesMembers = !isForOperator && type.startsWith('account.')
  return parseWithDigits(dataJson, (name, value, digits) => {
    if (hidesMembers && /^(?:upstreams|metadata)\b/.test(name)) return undefined
    return typeof value === 'number' ? rawNumber(digits) : value
  })
}

export interface EventQuery extends ListQuery {
  readonly type: EventType | null
  readonly actorId: string | null
  readonly fromMs: number | null
  /** Exclusive. */
  readonly toMs: number | null
}

export interface WebhookRecord {
  readonly id: string
  readonly accountId: string
  readonly url: string
  readonly events: readonly string[]
  readonly description: string
  readonly format: WebhookFormat
  readonly enabled: boolean
  readonly disabledReason: DisabledReason | null
  readonly createdAtMs: number
  /** Time of the last delivery attempt, and the status of its answer; null: no answer. */
  readonly lastDeliveryAtMs: number | null
  readonly lastStatus: number | null
}

export interface NewWebhook
  extends Pick<
    WebhookRecord,
    'id' | 'accountId' | 'url' | 'events' | 'description' | 'format' | 'createdAtMs'
  > {
  /** Encrypted: the database never has the plain secret. */
  readonly secret: Uint8Array
}

/** The members that a PATCH may change. An absent member does not change. Enabling clears reason and failures. */
export type WebhookChanges = Partial<
  Pick<WebhookRecord, 'url' | 'events' | 'description' | 'format' | 'enabled'>
>

export interface DeliveryRecord {
  readonly id: string
  readonly webhookId: string
  readonly eventId: string
  readonly eventType: string
  readonly status: DeliveryStatus
  readonly attempts: number
  readonly responseStatus: number | null
  /** The beginning of the last answer's body; null if none came. */
  readonly responseBody: string | null
  /** Why the last attempt failed; null after a success, and before the first. */
  readonly error: string | null
  readonly lastAttemptAtMs: number | null
  /** Null when there will be no further attempt. */
  readonly nextAttemptAtMs: number | null
  readonly createdAtMs: number
}

export interface DeliveryQuery extends ListQuery {
  readonly accountId: string
  readonly webhookId: string
  readonly status: DeliveryStatus | null
}

/** `disabled`: nothing is sent to this endpoint until it is enabled. */
export type QueuedDelivery =
  | { readonly kind: 'done'; readonly value: DeliveryRecord }
  | { readonly kind: 'disabled' }
  | { readonly kind: 'none' }

/** A delivery that this node may attempt until the claim ends, with everything that is needed to send it. */
export interface ClaimedDelivery {
  readonly id: string
  /** Attempts before this one, since the delivery was queued or redelivered. */
  readonly attempts: number
  readonly event: EventRecord
  readonly webhook: DeliveryTarget
}

export interface DeliveryTarget extends Pick<WebhookRecord, 'id' | 'url' | 'format'> {
  readonly secret: Uint8Array
  /** The previous secret, while it still signs. */
  readonly formerSecret: Uint8Array | null
}

export interface DeliveryAttempt
  extends Pick<DeliveryRecord, 'id' | 'webhookId' | 'responseStatus' | 'responseBody' | 'error'> {
  /** The URL of the attempt. A failure does not count against the endpoint if its URL has changed since. */
  readonly url: string
  /** The number of attempts before this one. If another node has taken over the delivery since, nothing is recorded. */
  readonly attempts: number
  readonly outcome:
    | { readonly kind: 'succeeded' }
    | { readonly kind: 'retry'; readonly inMs: number }
    | { readonly kind: 'failed' }
    | { readonly kind: 'gone' }
}

/** An endpoint that is disabled or deleted, or that has too many pending deliveries. */
export interface OverfullWebhook {
  readonly id: string
  readonly enabled: boolean
}
