import type { Key } from '../api/key.ts'
import type { ApiList, Client, Exact } from './client.ts'
import { Failure } from './command.ts'
import { shownInstant, shownText } from './terminal.ts'

/** A key record. Only the answer that creates the key has the secret. */
export type KeyRecord = Exact<Key> & { readonly key?: string }

const KEY_ID = /^key_[0-9A-HJKMNP-TV-Z]{26}$/

/** If several keys match, exactly one of them must be usable, so that no command acts on the wrong key. */
export async function findKey(client: Client, named: string): Promise<string> {
  if (KEY_ID.test(named)) return named
  const found = await searchKeys(client, named)
  const all = found.filter((key) => matches(key, named))
  const usable = all.filter(({ status }) => status === 'usable')
  const matching = usable.length === 1 ? usable : all
  const [only, ...others] = matching
  if (only === undefined)
    throw new Failure(`There is no key ${quoted(named)}.${listKeys('Did you mean', found)}`)
  if (others.length > 0)
    throw new Failure(`Several keys match ${quoted(named)}.${listKeys('Use the id of the key', matching)}`)
  // An id of another form could change the request path.
  if (!KEY_ID.test(only.id)) throw new Failure(`${client.url} lists a key with a malformed id. Check --url.`)
  return only.id
}

/** How many characters of a key may be shown. The rest is secret and must not appear in a URL or message. */
const PREFIX_CHARS = 16
const LISTED_MAX = 10

async function searchKeys(client: Client, named: string): Promise<readonly KeyRecord[]> {
  const query = { search: isKeyOrMasked(named) ? named.slice(0, PREFIX_CHARS) : named, limit: '1000' }
  const { value } = await client.request<ApiList<KeyRecord>>('list', 'GET', '/v1/keys', { query })
  if (value.has_more) throw new Failure(`More than 1,000 keys match ${quoted(named)}. Use the id of the key.`)
  return value.data
}

function matches({ name, prefix, last4 }: KeyRecord, named: string): boolean {
  if (name === named || last4 === named) return true
  if (isKeyOrMasked(named)) return named.startsWith(prefix) && named.endsWith(last4)
  return PART_OF_KEY.test(named) && prefix.startsWith(named)
}

/** A prefix needs three characters after `_live_`, so that an empty variable in a script does not match a key. */
const PART_OF_KEY = /_live_.{3,}/

/** Whether the text is a whole key, or `prefix…last4` as in lists. */
function isKeyOrMasked(named: string): boolean {
  return named.length > PREFIX_CHARS && /^[a-z][a-z0-9]*_live_/.test(named)
}

function listKeys(heading: string, keys: readonly KeyRecord[]): string {
  if (keys.length === 0) return ' `tollgate keys list` lists them.'
  const lines = keys.slice(0, LISTED_MAX).map(({ id, prefix, last4, status, created_at, name }) => {
    const state = `${status}, created ${shownInstant(created_at)} UTC`
    return `  ${shownText(`${id}  ${prefix}…${last4}`)}  ${state}  ${shownText(name, 40)}`
  })
  const more = keys.length > LISTED_MAX ? [`  and ${keys.length - LISTED_MAX} more`] : []
  return ` ${heading}:\n${[...lines, ...more].join('\n')}`
}

/** Quotes the text. It may be a whole key by mistake, which must not get into a log. */
function quoted(named: string): string {
  return `"${shownText(isKeyOrMasked(named) ? `${named.slice(0, PREFIX_CHARS)}…` : named, 60)}"`
}
