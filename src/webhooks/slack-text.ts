import { parseWithDigits } from '../kernel/money.ts'
import { MONTHS } from '../ledger/calendar.ts'

/** Slack, Mattermost, Rocket.Chat and others accept `{"text"}`. */
export function slackBody(payload: string, dashboardUrl: URL | null): string {
  // Amounts stay text with all digits; `dollars` truncates them.
  const event = parseWithDigits(payload, (name, value, digits) =>
    typeof value === 'number' && name.endsWith('_usd') ? digits : value,
  ) as Payload
  return JSON.stringify({ text: sentenceOf(event) + linkOf(event.data, dashboardUrl) })
}

interface ShownKey {
  readonly id: string
  readonly name: string
  readonly expires_at: string | null
}

/** The payload members used in the sentences. Which are present depends on the type. */
interface Payload {
  readonly type: string
  readonly timestamp: string
  readonly data: {
    readonly key?: ShownKey
    readonly old_key?: ShownKey
    readonly account?: { readonly id: string; readonly name?: string }
    readonly period?: 'month' | 'day'
    readonly threshold_percent?: number
    readonly spent_usd?: string
    readonly cap_usd?: string
    readonly held_usd?: string
    readonly resets_at?: string
    readonly balance?: { readonly balance_usd: string; readonly held_usd: string; readonly enforced: boolean }
    readonly model?: string | null
    readonly refused?: boolean
    readonly file?: string
    readonly reason?: string
    readonly request_id?: string | null
    readonly prices?: { readonly models: readonly string[] }
    readonly credit?: { readonly amount_usd: string; readonly reason: string }
    readonly admin_key?: { readonly name: string; readonly role: string }
    readonly person?: { readonly id: string; readonly email: string }
    readonly webhook?: { readonly id: string; readonly url: string; readonly disabled_reason: string | null }
  }
}

function sentenceOf({ type, timestamp, data }: Payload): string {
  const name = subjectOf(type, data)
  const period = data.period === 'day' ? 'today' : monthBefore(data.resets_at)
  const figures = `${dollars(data.spent_usd)} of ${dollars(data.cap_usd)}`
  const held = data.held_usd === '0' ? '' : `, and calls in flight have reserved ${dollars(data.held_usd)}`
  const resets = ` The budget resets on ${dayOf(data.resets_at)}.`
  const { balance_usd, held_usd, enforced } = data.balance ?? {}
  const balance = `${dollars(balance_usd)}, of which calls in flight have reserved ${dollars(held_usd)}`
  switch (type) {
    case 'key.budget.threshold':
    case 'account.budget.threshold':
      return `${name} has passed ${data.threshold_percent} % of its budget for ${period}: ${figures}${held}.${resets}`
    case 'key.budget.exceeded':
    case 'account.budget.exceeded':
      return `${name} has spent its budget for ${period}: ${figures}. Its calls are refused from now on.${resets}`
    case 'balance.low':
      return `The prepaid credit is low: ${balance}.`
    case 'balance.exhausted':
      return `The prepaid credit is used up: ${balance}.${enforced ? ' Calls are refused until credit is added.' : ''}`
    case 'credit.added':
      return `Credit of ${dollars(data.credit?.amount_usd)} was added (${quoted(data.credit?.reason)}). The balance is ${dollars(balance_usd)}.`
    case 'key.rotated':
      return `${name} was rotated: a new key replaces \`${data.old_key?.id}\`, which ${endOf(data.old_key)}.`
    case 'key.expired':
      return `${name} has expired.`
    case 'key.expiring':
      return `${name} expires on ${dayOf(data.key?.expires_at)}, in ${inDays(timestamp, data.key?.expires_at)}.`
    case 'call.unpriced':
      return `The model ${quoted(data.model)} has no price, so the gateway ${data.refused === true ? 'refused' : 'did not count the cost of'} the call \`${data.request_id}\`.`
    case 'reload.refused':
      return `The file ${quoted(data.file)} cannot be used, so its former content stays in use: ${quoted(data.reason)}.`
    case 'prices.updated':
      return `Prices changed: ${(data.prices?.models ?? []).slice(0, 5).map(quoted).join(', ')}.`
    case 'person.created':
      return `${name} signed in for the first time.`
    case 'person.moved':
      return `${name} was moved to another account. All keys of the person are revoked.`
    case 'person.blocked':
      return `${name} was blocked. All keys of the person are revoked.`
    case 'webhook.disabled':
      return `${name} was disabled: ${DISABLED[data.webhook?.disabled_reason ?? ''] ?? 'it was turned off'}.`
    case 'webhook.test':
      return 'This is a test of a Tollgate webhook. It works.'
    default:
      return `${name} was ${type.replace(/^.*\./, '').replace('updated', 'changed')}.`
  }
}

function subjectOf(type: string, { key, account, admin_key, webhook, person }: Payload['data']): string {
  if (type.startsWith('admin_key.')) return `The admin key ${quoted(admin_key?.name)}`
  if (type.startsWith('person.')) return `The person ${quoted(person?.email)}`
  if (type.startsWith('webhook.')) return `The webhook \`${webhook?.id}\``
  return key === undefined ? `Account ${quoted(account?.name ?? account?.id)}` : `Key ${quoted(key.name)}`
}

const DISABLED: Readonly<Record<string, string>> = {
  gone: 'it answered 410 Gone',
  failing: 'every delivery failed for five days',
}

function linkOf({ key, person }: Payload['data'], dashboardUrl: URL | null): string {
  const path = key === undefined ? person && `people/${person.id}` : `keys/${key.id}`
  if (path === undefined || dashboardUrl === null) return ''
  const base = dashboardUrl.href.replace(/\/+$/, '')
  return ` <${escaped(`${base}/dashboard/${path}`)}|Open in the dashboard>`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

const QUOTED_MAX = 100

/** As inline code, without links or formatting. Characters that could break out of the code are removed. */
function quoted(text: string | null | undefined): string {
  const characters = [
    ...(text ?? '')
      .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ')
      .replaceAll('`', "'")
      .trim(),
  ]
  const cut = characters.length > QUOTED_MAX ? [...characters.slice(0, QUOTED_MAX - 1), '…'] : characters
  return `\`${escaped(cut.join('') || 'unknown')}\``
}

/** Cents from a dollar on, else three digits. Truncated, so that spend never seems to reach the cap early. */
function dollars(amount: string | undefined): string {
  const [, sign = '', whole = '', fraction = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(amount ?? '') ?? []
  const places = whole === '0' ? fraction.search(/[1-9]|$/) + 3 : 2
  const shown = fraction.slice(0, places).replace(/0+$/, '')
  return `${sign}$${whole}${shown === '' ? '' : `.${shown.padEnd(2, '0')}`}`
}

/** The name of the month before this instant: the budget of a month resets at the beginning of the next month. */
function monthBefore(instant: string | undefined): string {
  return MONTHS[new Date(Date.parse(instant ?? '') - 1).getUTCMonth()] ?? ''
}

function dayOf(instant: string | null | undefined): string {
  return `${instant?.slice(0, 10)} (UTC)`
}

function endOf(key: ShownKey | undefined): string {
  return key?.expires_at === null || key === undefined ? 'stays usable' : `ends on ${dayOf(key.expires_at)}`
}

function inDays(from: string, to: string | null | undefined): string {
  const days = Math.round((Date.parse(to ?? from) - Date.parse(from)) / 86_400_000)
  return days === 1 ? '1 day' : `${days} days`
}
