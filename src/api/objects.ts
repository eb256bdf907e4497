import type { OwnUpstream } from '../kernel/vocabulary.ts'
import { type AdminKeyRecord, type KeyRecord, keyStatus, LIMIT_NAMES } from '../keys/key-store.ts'
import type { AccountRecord, Balance, CreditEntry } from '../ledger/account.ts'
import { nextMonthMs } from '../ledger/calendar.ts'
import type { WebhookRecord } from '../webhooks/webhook-store.ts'
import type { Account } from './account.ts'
import type { AdminKey } from './admin-key.ts'
import type { BalanceObject, Credit } from './credit.ts'
import { fieldsOf, formatInstant, usd } from './field-names.ts'
import type { Written } from './fields.ts'
import type { Key } from './key.ts'
import type { Webhook } from './webhook.ts'

/** The objects of answers and events. The database threads load this file, so it imports only types of the schemas. */

/** `waiting`: the number of the key's waiting calls on this node. */
export function keyObject(key: KeyRecord, nowMs: number, waiting: number): Written<Key> {
  return {
    object: 'key',
    ...fieldsOf(key, ['id', 'accountId', 'budgetId', 'name', 'prefix', 'last4', ...LIMIT_NAMES]),
    ...fieldsOf(key, ['createdAtMs', 'revokedAtMs', 'lastUsedAtMs', 'rotatedFrom']),
    status: keyStatus(key, nowMs),
    month_spend_usd: usd(key.month.spentNanos),
    month_held_usd: usd(key.month.heldNanos),
    month_waiting: waiting,
    month_lost_usd: usd(key.month.lostNanos),
    day_spend_usd: usd(key.month.daySpentNanos),
    budget_resets_at: formatInstant(nextMonthMs(nowMs)),
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

export function balanceObject(balance: Balance): Written<BalanceObject> {
  return {
    object: 'balance',
    ...fieldsOf(balance, ['heldNanos', 'creditedNanos', 'chargedNanos']),
    balance_usd: usd(balance.creditedNanos - balance.chargedNanos),
    enforced: balance.creditEnforced,
  }
}

export function creditObject(entry: CreditEntry): Written<Credit> {
  return {
    object: 'credit',
    ...fieldsOf(entry, ['id', 'accountId', 'amountNanos', 'reason', 'kind', 'actor', 'balanceAfterNanos']),
    created_at: formatInstant(entry.atMs),
  }
}

export function webhookObject(webhook: WebhookRecord): Written<Webhook> {
  return {
    object: 'webhook',
    ...fieldsOf(webhook, ['id', 'url', 'events', 'description', 'format', 'enabled', 'disabledReason']),
    ...fieldsOf(webhook, ['createdAtMs', 'lastDeliveryAtMs', 'lastStatus']),
  }
}

const upstreamObject = (own: OwnUpstream | null) =>
  own === null ? null : { url: own.url, has_key: own.sealedKey !== null }

export function accountObject(account: AccountRecord, nowMs: number): Written<Account> {
  const { discountBillionths: discount, upstreams } = account
  return {
    object: 'account',
    ...fieldsOf(account, ['id', 'name', 'status', 'monthlyBudgetNanos', 'creditEnforced', 'balanceNanos']),
    ...fieldsOf(account, ['metadata', 'createdAtMs']),
    month_spend_usd: usd(account.spentNanos),
    month_held_usd: usd(account.heldNanos),
    budget_resets_at: formatInstant(nextMonthMs(nowMs)),
    discount: discount === null ? null : usd(BigInt(discount)),
    upstreams: { messages: upstreamObject(upstreams.messages), chat: upstreamObject(upstreams.chat) },
  }
}

export function adminKeyObject(key: AdminKeyRecord): Written<AdminKey> {
  return {
    object: 'admin_key',
    ...fieldsOf(key, ['id', 'name', 'role', 'accountId', 'prefix', 'last4']),
    ...fieldsOf(key, ['createdAtMs', 'revokedAtMs', 'lastUsedAtMs']),
    status: key.revokedAtMs === null ? 'usable' : 'revoked',
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
