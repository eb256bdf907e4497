import type { OwnUpstream } from '../kernel/vocabulary.ts'
import { type AdminKeyRecord, type KeyRecord, LIMIT_NAMES, shownStatus } from '../keys/key-store.ts'
import { type MemberLimits, PERSON_LIMIT_NAMES, type PersonRecord } from '../keys/person-store.ts'
import type { AccountRecord, Balance, CreditEntry } from '../ledger/account.ts'
import { nextMonthMs } from '../ledger/calendar.ts'
import type { WebhookRecord } from '../webhooks/webhook-store.ts'
import type { Account } from './account.ts'
import type { AdminKey } from './admin-key.ts'
import type { BalanceObject, Credit } from './credit.ts'
import { fieldsOf, formatInstant, usd } from './field-names.ts'
import type { Written } from './fields.ts'
import type { Key } from './key.ts'
import type { Members, Person } from './person.ts'
import type { Webhook } from './webhook.ts'

/** The objects of answers and events. The database threads load this file, so it imports only types of the schemas. */

/** `waiting`: the number of the key's waiting calls on this node. */
export function keyObject(key: KeyRecord, nowMs: number, waiting: number): Written<Key> {
  return {
    id: key.id,
    object: 'key',
    ...fieldsOf(key, ['accountId', 'budgetId', 'personId', 'name', 'prefix', 'last4']),
    status: shownStatus(key, nowMs),
    ...fieldsOf(key, LIMIT_NAMES),
    month_spend_usd: usd(key.month.spentNanos),
    month_held_usd: usd(key.month.heldNanos),
    month_waiting: waiting,
    month_lost_usd: usd(key.month.lostNanos),
    day_spend_usd: usd(key.month.daySpentNanos),
    budget_resets_at: formatInstant(nextMonthMs(nowMs)),
    ...fieldsOf(key, ['createdAtMs', 'revokedAtMs', 'lastUsedAtMs', 'rotatedFrom']),
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
    balance_usd: usd(balance.creditedNanos - balance.chargedNanos),
    ...fieldsOf(balance, ['heldNanos', 'creditedNanos', 'chargedNanos']),
    enforced: balance.creditEnforced,
  }
}

export function creditObject(entry: CreditEntry): Written<Credit> {
  return {
    id: entry.id,
    object: 'credit',
    ...fieldsOf(entry, ['accountId', 'amountNanos', 'reason', 'kind', 'actor']),
    created_at: formatInstant(entry.atMs),
    balance_after_usd: usd(entry.balanceAfterNanos),
  }
}

export function webhookObject(webhook: WebhookRecord): Written<Webhook> {
  return {
    id: webhook.id,
    object: 'webhook',
    ...fieldsOf(webhook, ['url', 'events', 'description', 'format', 'enabled', 'disabledReason']),
    ...fieldsOf(webhook, ['createdAtMs', 'lastDeliveryAtMs', 'lastStatus']),
  }
}

const upstreamObject = (own: OwnUpstream | null) =>
  own === null ? null : { url: own.url, has_key: own.sealedKey !== null }

export function accountObject(account: AccountRecord, nowMs: number): Written<Account> {
  const { discountBillionths: discount, upstreams } = account
  return {
    id: account.id,
    object: 'account',
    ...fieldsOf(account, ['name', 'status', 'monthlyBudgetNanos']),
    month_spend_usd: usd(account.spentNanos),
    month_held_usd: usd(account.heldNanos),
    budget_resets_at: formatInstant(nextMonthMs(nowMs)),
    ...fieldsOf(account, ['creditEnforced', 'balanceNanos']),
    discount: discount === null ? null : usd(BigInt(discount)),
    upstreams: { messages: upstreamObject(upstreams.messages), chat: upstreamObject(upstreams.chat) },
    ...fieldsOf(account, ['metadata', 'createdAtMs']),
  }
}

export function adminKeyObject(key: AdminKeyRecord): Written<AdminKey> {
  return {
    id: key.id,
    object: 'admin_key',
    ...fieldsOf(key, ['name', 'role', 'accountId', 'prefix', 'last4']),
    status: key.revokedAtMs === null ? 'usable' : 'revoked',
    ...fieldsOf(key, ['createdAtMs', 'revokedAtMs', 'lastUsedAtMs']),
  }
}

export function personObject(person: PersonRecord, nowMs: number): Written<Person> {
  return {
    id: person.id,
    object: 'person',
    ...fieldsOf(person, ['accountId', 'email', 'name', 'role', 'status', 'budgetId', ...PERSON_LIMIT_NAMES]),
    month_spend_usd: usd(person.month.spentNanos),
    month_held_usd: usd(person.month.heldNanos),
    day_spend_usd: usd(person.month.daySpentNanos),
    budget_resets_at: formatInstant(nextMonthMs(nowMs)),
    ...fieldsOf(person, ['keys', 'createdAtMs', 'lastSeenAtMs']),
  }
}

export function memberLimitsObject(limits: MemberLimits): Written<Members> {
  return {
    object: 'members',
    ...fieldsOf(limits, ['keysMax', 'keyDaysMax', 'monthlyBudgetNanos', 'dailyBudgetNanos']),
    ...fieldsOf(limits, ['requestsPerMinute', 'allowedModels', 'logRequests']),
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
