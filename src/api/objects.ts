import { formatUsd, type Nanos, type RawNumber, rawNumber } from '../kernel/money.ts'
import type { OwnUpstream } from '../kernel/vocabulary.ts'
import { type AdminKeyRecord, KEY_LIMITS, type KeyRecord, keyStatus } from '../keys/key-store.ts'
import type { AccountRecord, Balance, CreditEntry } from '../ledger/account.ts'
import { nextMonthMs } from '../ledger/calendar.ts'
import type { WebhookRecord } from '../webhooks/webhook-store.ts'
import type { Account } from './account.ts'
import type { AdminKey } from './admin-key.ts'
import type { BalanceObject, Credit } from './credit.ts'
import type { Written } from './fields.ts'
import type { Key } from './key.ts'
import type { Webhook } from './webhook.ts'

/** The objects of answers and events. The database threads load this file, so it imports only types of the schemas. */

export function formatInstant(ms: number): string
export function formatInstant(ms: number | null): string | null
export function formatInstant(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}

/** Money in an answer: a JSON number printed from the integer, never from a double. */
export function usd(nanos: Nanos): RawNumber
export function usd(nanos: Nanos | null): RawNumber | null
export function usd(nanos: Nanos | null): RawNumber | null {
  return nanos === null ? null : rawNumber(formatUsd(nanos))
}

type LimitField = (typeof KEY_LIMITS)[number]['field']

function limitsObject(key: KeyRecord): Pick<Written<Key>, LimitField> {
  const shown = KEY_LIMITS.map(({ name, field, kind }) => {
    const value = key[name]
    if (typeof value === 'bigint') return [field, usd(value)]
    return [field, kind === 'instant?' && typeof value === 'number' ? formatInstant(value) : value]
  })
  return Object.fromEntries(shown) as Pick<Written<Key>, LimitField>
}

/** `waiting`: the number of the key's waiting calls on this node. */
export function keyObject(key: KeyRecord, nowMs: number, waiting: number): Written<Key> {
  return {
    id: key.id,
    object: 'key',
    account_id: key.accountId,
    budget_id: key.budgetId,
    name: key.name,
    prefix: key.prefix,
    last4: key.last4,
    status: keyStatus(key, nowMs),
    ...limitsObject(key),
    month_spend_usd: usd(key.month.spentNanos),
    month_held_usd: usd(key.month.heldNanos),
    month_waiting: waiting,
    month_lost_usd: usd(key.month.lostNanos),
    day_spend_usd: usd(key.month.daySpentNanos),
    budget_resets_at: formatInstant(nextMonthMs(nowMs)),
    created_at: formatInstant(key.createdAtMs),
    revoked_at: formatInstant(key.revokedAtMs),
    last_used_at: formatInstant(key.lastUsedAtMs),
    rotated_from: key.rotatedFrom,
  }
}

/** A key as it appears in events, without `month_waiting`, which differs between nodes. */
export function eventKey(key: KeyRecord, nowMs: number): Omit<Written<Key>, 'month_waiting'> {
  const { month_waiting: _, ...object } = keyObject(key, nowMs, 0)
  return object
}

/** The fields that a PATCH changed; null if none. Figures are left out, because they also change without a PATCH. */
export function keyChangesOf(before: KeyRecord, after: KeyRecord, nowMs: number): Changes | null {
  return changesOf(editable(before), editable(after))

  function editable(key: KeyRecord): object {
    const isFigure = (name: string) => /^(month_|day_|last_used_at$|budget_resets_at$|status$)/.test(name)
    return Object.fromEntries(Object.entries(keyObject(key, nowMs, 0)).filter(([name]) => !isFigure(name)))
  }
}

const balanceUsd = (balance: Balance) => usd(balance.creditedNanos - balance.chargedNanos)

export function balanceObject(balance: Balance): Written<BalanceObject> {
  return {
    object: 'balance',
    balance_usd: balanceUsd(balance),
    held_usd: usd(balance.heldNanos),
    credited_usd: usd(balance.creditedNanos),
    charged_usd: usd(balance.chargedNanos),
    enforced: balance.creditEnforced,
  }
}

export function creditObject(entry: CreditEntry): Written<Credit> {
  return {
    id: entry.id,
    object: 'credit',
    account_id: entry.accountId,
    amount_usd: usd(entry.amountNanos),
    reason: entry.reason,
    kind: entry.kind,
    actor: entry.actor,
    created_at: formatInstant(entry.atMs),
    balance_after_usd: usd(entry.balanceAfterNanos),
  }
}

export function webhookObject(webhook: WebhookRecord): Written<Webhook> {
  const { id, url, events, description, format, enabled } = webhook
  return {
    id,
    object: 'webhook',
    ...{ url, events, description, format, enabled },
    disabled_reason: webhook.disabledReason,
    created_at: formatInstant(webhook.createdAtMs),
    last_delivery_at: formatInstant(webhook.lastDeliveryAtMs),
    last_status: webhook.lastStatus,
  }
}

const upstreamObject = (own: OwnUpstream | null) =>
  own === null ? null : { url: own.url, has_key: own.sealedKey !== null }

export function accountObject(account: AccountRecord, nowMs: number): Written<Account> {
  const { discountBillionths: discount, upstreams } = account
  return {
    id: account.id,
    object: 'account',
    name: account.name,
    status: account.status,
    monthly_budget_usd: usd(account.monthlyBudgetNanos),
    month_spend_usd: usd(account.spentNanos),
    month_held_usd: usd(account.heldNanos),
    budget_resets_at: formatInstant(nextMonthMs(nowMs)),
    credit_enforced: account.creditEnforced,
    balance_usd: usd(account.balanceNanos),
    discount: discount === null ? null : usd(BigInt(discount)),
    upstreams: { messages: upstreamObject(upstreams.messages), chat: upstreamObject(upstreams.chat) },
    metadata: account.metadata,
    created_at: formatInstant(account.createdAtMs),
  }
}

export function adminKeyObject(key: AdminKeyRecord): Written<AdminKey> {
  const { id, name, role, accountId, prefix, last4 } = key
  return {
    id,
    object: 'admin_key',
    ...{ name, role, account_id: accountId, prefix, last4 },
    status: key.revokedAtMs === null ? 'usable' : 'revoked',
    created_at: formatInstant(key.createdAtMs),
    revoked_at: formatInstant(key.revokedAtMs),
    last_used_at: formatInstant(key.lastUsedAtMs),
  }
}

type Changes = Readonly<Record<string, { readonly old: unknown; readonly new: unknown }>>

export function changesOf(before: object, after: object): Changes | null {
  const old = new Map(Object.entries(before))
  const changed = Object.entries(after)
    .filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(old.get(name)))
    .map(([name, value]) => [name, { old: old.get(name) ?? null, new: value }] as const)
  return changed.length === 0 ? null : Object.fromEntries(changed)
}
