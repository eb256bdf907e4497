import type { Key } from '../api/key.ts'
import { KEY_OPTIONS } from '../keys/key-store.ts'
import type { ApiList, Client, Exact } from './client.ts'
import { Failure } from './command.ts'
import { shownInstant, shownText, type TableCell, type TerminalStyle } from './terminal.ts'

/** The secret is in the answer that creates the key. */
export type KeyRecord = Exact<Key> & { readonly key?: string }

export function shownKey({ prefix, last4 }: KeyRecord): string {
  return shownText(`${prefix}…${last4}`)
}

export function statusCell({ status }: KeyRecord): Exclude<TableCell, string> {
  return { text: shownText(status), style: status === 'usable' ? 'green' : 'red' }
}

/** All fields of a key, one per line, without empty ones. */
export function renderKey(key: KeyRecord, style: TerminalStyle): string {
  const status = statusCell(key)
  const limits = KEY_OPTIONS.flatMap(({ field, label, unit }) =>
    key[field] === null ? [] : [[label, shownText(`${key[field]} ${unit}`.trim())] as const],
  )
  const metadata = Object.entries(key.metadata).map(([name, value]) => shownText(`${name}=${value}`, 600))
  const lost = `${key.month_lost_usd} USD at list price, in interrupted calls of this month`
  const models = key.allowed_models?.map((model) => shownText(model)).join(', ')
  const lines: readonly (readonly [string, string])[] = [
    ['status', style.paint(status.style, status.text)],
    ['key', shownKey(key)],
    ...(limits.length === 0 ? [['limits', 'none'] as const] : limits),
    ['this month', `${key.month_spend_usd} USD spent, ${key.month_held_usd} USD reserved`],
    ['today', key.daily_budget_usd === null ? '' : `${key.day_spend_usd} USD spent`],
    ['waiting', key.month_waiting === '0' ? '' : `${key.month_waiting} calls`],
    ['lost', key.month_lost_usd === '0' ? '' : lost],
    ['resets', utc(key.budget_resets_at)],
    ['models', models ?? 'all'],
    ['metadata', metadata.join(', ')],
    ['logging', key.log_requests ? 'on' : 'off'],
    ['expires', utc(key.expires_at) || 'never'],
    ['created', utc(key.created_at)],
    ['last used', utc(key.last_used_at) || 'never'],
    ['revoked', utc(key.revoked_at)],
    ['rotated from', shownText(key.rotated_from ?? '')],
  ]
  return [
    `${shownText(key.id)}  ${style.paint('bold', shownText(key.name, 120))}`,
    ...lines
      .filter(([, value]) => value !== '')
      .map(([name, value]) => `  ${style.paint('dim', name.padEnd(13))} ${value}`),
    '',
  ].join('\n')
}

function utc(instant: string | null): string {
  return instant === null ? '' : `${shownInstant(instant)} UTC`
}

const KEY_ID = /^key_[0-9A-HJKMNP-TV-Z]{26}$/

/**
 * The id of the key with this id, name, prefix or last four characters. If several match, all are listed and nothing is
 * done, so that a command never acts on the wrong key.
 */
export async function findKey(client: Client, named: string): Promise<string> {
  if (KEY_ID.test(named)) return named
  const found = await searchKeys(client, named)
  const matching = found.filter((key) => matches(key, named))
  const [only, ...others] = matching
  if (only === undefined)
    throw new Failure(`There is no key ${quoted(named)}.${listed('Did you mean', found)}`)
  if (others.length > 0)
    throw new Failure(`Several keys match ${quoted(named)}.${listed('Name one by its id', matching)}`)
  // An id of another form could change the request path.
  if (!KEY_ID.test(only.id)) throw new Failure(`${client.url} lists a key with a malformed id.`)
  return only.id
}

/** How many characters of a key may be shown. The rest is secret and must not appear in a URL or message. */
const PREFIX_CHARS = 16
const PAGES_MAX = 100
const LISTED_MAX = 10

async function searchKeys(client: Client, named: string): Promise<KeyRecord[]> {
  const search = isWhole(named) ? named.slice(0, PREFIX_CHARS) : named
  const found: KeyRecord[] = []
  let after: string | undefined
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const query = { search, limit: '1000', after }
    const { data, next } = (await client.get<ApiList<KeyRecord>>('list', '/v1/keys', query)).value
    // A few non-matching keys suffice for the suggestion.
    found.push(...data.filter((key) => found.length < LISTED_MAX || matches(key, named)))
    if (next === null) return found
    after = next
  }
  throw new Failure(`Too many keys have ${quoted(named)} in their name. Name one by its id.`)
}

function matches({ name, prefix, last4 }: KeyRecord, named: string): boolean {
  if (name === named || last4 === named) return true
  if (isWhole(named)) return named.startsWith(prefix) && named.endsWith(last4)
  return named.includes('_live_') && prefix.startsWith(named)
}

/** Whether the text is a key as lists show it, `prefix…last4`, or a whole key. */
function isWhole(named: string): boolean {
  return named.length > PREFIX_CHARS && /^[a-z][a-z0-9]*_live_/.test(named)
}

function listed(heading: string, keys: readonly KeyRecord[]): string {
  if (keys.length === 0) return ' `tollgate keys list` lists them.'
  const lines = keys.slice(0, LISTED_MAX).map((key) => {
    const state = `${key.status}, created ${utc(key.created_at)}`
    return `  ${key.id}  ${shownKey(key)}  ${state}  ${shownText(key.name, 40)}`
  })
  const more = keys.length > LISTED_MAX ? [`  and ${keys.length - LISTED_MAX} more`] : []
  return ` ${heading}:\n${[...lines, ...more].join('\n')}`
}

/** The text may be a whole key by mistake, which must not get into a log. */
function quoted(named: string): string {
  return `"${shownText(isWhole(named) ? `${named.slice(0, PREFIX_CHARS)}…` : named, 60)}"`
}
