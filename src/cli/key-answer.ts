import { array, boolean, type Infer, nullable, object, optional, string } from './answer-schema.ts'
import type { Api } from './api.ts'
import { Failure } from './command.ts'
import { type Cell, shownInstant, shownText, type TerminalStyle } from './terminal.ts'

/** A key as the API answers it. Numbers are texts. */
export const keyAnswer = object({
  id: string,
  name: string,
  prefix: string,
  last4: string,
  status: string,
  monthly_budget_usd: nullable(string),
  month_spend_usd: string,
  month_held_usd: string,
  month_waiting: string,
  month_lost_usd: string,
  budget_resets_at: string,
  allowed_models: nullable(array(string)),
  log_requests: boolean,
  expires_at: nullable(string),
  created_at: string,
  revoked_at: nullable(string),
  last_used_at: nullable(string),
  rotated_from: nullable(string),
  /** The secret of a key that was just made. */
  key: optional(string),
})

export type KeyAnswer = Infer<typeof keyAnswer>

export function shownKey({ prefix, last4 }: KeyAnswer): string {
  return shownText(`${prefix}…${last4}`)
}

export function statusCell({ status }: KeyAnswer): Exclude<Cell, string> {
  return { text: shownText(status), style: status === 'usable' ? 'green' : 'red' }
}

/** All that there is to say of a key, for people. Empty values are left out. */
export function renderKey(key: KeyAnswer, style: TerminalStyle): string {
  const status = statusCell(key)
  const cap = key.monthly_budget_usd
  const waiting = `calls for room under the cap or for credit: ${key.month_waiting}`
  const lost = `${key.month_lost_usd} USD at list price, in calls of this month that were interrupted`
  const models = key.allowed_models?.map((model) => shownText(model)).join(', ')
  const lines: readonly (readonly [string, string])[] = [
    ['status', style.paint(status.style, status.text)],
    ['key', shownKey(key)],
    ['monthly cap', cap === null ? 'none' : `${cap} USD`],
    ['this month', `${key.month_spend_usd} USD spent, ${key.month_held_usd} USD held by calls in flight`],
    ['waiting', key.month_waiting === '0' ? '' : waiting],
    ['lost', key.month_lost_usd === '0' ? '' : lost],
    ['month ends', utc(key.budget_resets_at)],
    ['models', models ?? 'all'],
    ['bodies', key.log_requests ? 'logged' : 'not logged'],
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
 * The id of the key that was named: by its id, else by its name, else by how it begins or ends. A name of several
 * keys is refused, with a list of these keys: a command must not end another key than the one that was meant.
 */
export async function findKey(api: Api, option: string, named: string): Promise<string> {
  if (KEY_ID.test(named)) return named
  const found = await search(api.naming({ search: option }), named)
  const matching = [
    found.filter(({ name }) => name === named),
    found.filter((key) => isLike(key, named)),
  ].find((keys) => keys.length > 0)
  if (matching === undefined)
    throw new Failure(`There is no key ${quoted(named)}.${listed('Did you mean', found)}`)
  const [only, ...others] = matching
  if (only === undefined || others.length > 0)
    throw new Failure(`${quoted(named)} could be several keys.${listed('Name one by its id', matching)}`)
  // An id of another form could lead to another path of the API.
  if (!KEY_ID.test(only.id)) throw new Failure(`${api.place} lists a key whose id is none.`)
  return only.id
}

/** Characters of a key that are shown. The rest of the key is secret, and is put into no query. */
const PREFIX_CHARS = 16
const PAGES_MAX = 100

const page = object({ data: array(keyAnswer), next: nullable(string) })

async function search(api: Api, named: string): Promise<KeyAnswer[]> {
  const text = isWhole(named) ? named.slice(0, PREFIX_CHARS) : named
  const found: KeyAnswer[] = []
  let after: string | undefined
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const query = { search: text, limit: '1000', after }
    const { data, next } = (await api.ask(page, 'GET', '/v1/keys', { query })).value
    // A few of the keys that do not match exactly are enough, for the suggestion.
    found.push(...data.filter((key) => found.length < LISTED_MAX || key.name === named || isLike(key, named)))
    if (next === null) return found
    after = next
  }
  throw new Failure(`Too many keys have ${quoted(named)} in their name. Name one by its id.`)
}

function isLike({ prefix, last4 }: KeyAnswer, named: string): boolean {
  if (isWhole(named)) return named.startsWith(prefix) && named.endsWith(last4)
  return prefix.startsWith(named) || last4 === named
}

/** Whether the text is a key as lists show it, `prefix…last4`, or a whole key. */
function isWhole(named: string): boolean {
  return named.length > PREFIX_CHARS && /^[a-z][a-z0-9]*_live_/.test(named)
}

const LISTED_MAX = 10

function listed(heading: string, keys: readonly KeyAnswer[]): string {
  if (keys.length === 0) return ' `tollgate keys list` shows them all.'
  const lines = keys.slice(0, LISTED_MAX).map((key) => {
    const state = `${key.status}, created ${utc(key.created_at)}`
    return `  ${key.id}  ${shownKey(key)}  ${state}  ${shownText(key.name, 40)}`
  })
  const more = keys.length > LISTED_MAX ? [`  and ${keys.length - LISTED_MAX} more`] : []
  return ` ${heading}:\n${[...lines, ...more].join('\n')}`
}

/** The typed text may be a whole key by mistake, which must not come into a log. */
function quoted(named: string): string {
  return `"${shownText(isWhole(named) ? `${named.slice(0, PREFIX_CHARS)}…` : named, 60)}"`
}
