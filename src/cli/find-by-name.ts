import type { Account } from '../api/account.ts'
import type { Key } from '../api/key.ts'
import type { Person } from '../api/person.ts'
import { type ApiList, type Client, type CommandOptions, type Exact, openClient } from './client.ts'
import { Failure } from './command.ts'
import { shownInstant, shownText } from './terminal.ts'

/** The members of a key, an account or a person that name it in a message. */
interface Named
  extends Pick<Account, 'id' | 'name' | 'created_at'>,
    Partial<Pick<Key, 'prefix' | 'last4'> & Pick<Person, 'email'>> {
  readonly status: string
}

type Found = Pick<ApiList<Named>, 'data' | 'has_more'>

const NOUNS = {
  key: { id: /^key_[0-9A-HJKMNP-TV-Z]{26}$/, plural: 'keys' },
  account: { id: /^(?:default|acct_[0-9A-HJKMNP-TV-Z]{26})$/, plural: 'accounts' },
  person: { id: /^per_[0-9A-HJKMNP-TV-Z]{26}$/, plural: 'people' },
} as const

type Noun = keyof typeof NOUNS

/** If several keys match, exactly one of them must be usable, so that no command acts on the wrong key. */
export async function findKey(client: Client, named: string): Promise<string> {
  if (NOUNS.key.id.test(named)) return named
  const search = isKeyOrMasked(named) ? named.slice(0, PREFIX_CHARS) : named
  const found = await searchFor('/v1/keys', search, client, await client.everyAccount())
  const all = found.data.filter((key) => matches(key, named))
  const usable = all.filter(({ status }) => status === 'usable')
  return onlyMatch('key', named, usable.length === 1 ? usable : all, found)
}

export async function findAccount(client: Client, named: string): Promise<string> {
  if (named === '*' || NOUNS.account.id.test(named)) return named
  return onlyAccount(named, await searchFor('/gateway/v1/accounts', named, client))
}

/** The email address names one person better than the name, which several may have. */
export async function findPerson(client: Client, named: string): Promise<string> {
  if (NOUNS.person.id.test(named)) return named
  const found = await searchFor('/gateway/v1/people', named, client, await client.everyAccount())
  const address = named.toLowerCase()
  const addressed = found.data.filter(({ email }) => email.toLowerCase() === address)
  const matching = addressed.length > 0 ? addressed : found.data.filter(({ name }) => name === named)
  return onlyMatch('person', named, matching, found)
}

/** Other accounts with the name of this one. */
export async function namesakesOf({ id, name }: Pick<Account, 'id' | 'name'>, options: CommandOptions) {
  const { data } = await searchFor('/gateway/v1/accounts', name, openClient(options))
  return data.filter((other) => other.name === name && other.id !== id)
}

/** A suspended account matches too, because it can be resumed. */
export function onlyAccount(named: string, found: Found): string {
  const matching = found.data.filter(({ id, name }) => id === named || name === named)
  return onlyMatch('account', named, matching, found)
}

/** A client that acts in the account of `--account`, given by its id or name. */
export async function connect({ account, ...options }: CommandOptions): Promise<Client> {
  const client = openClient(options)
  return account === undefined ? client : client.inAccount(await findAccount(client, account))
}

/** How many characters of a key may be shown. The rest is secret and must not appear in a URL or message. */
const PREFIX_CHARS = 16
const LISTED_MAX = 10

async function searchFor<Path extends '/v1/keys' | '/gateway/v1/accounts' | '/gateway/v1/people'>(
  path: Path,
  search: string,
  client: Client,
  account?: string,
) {
  return await client.list(path, { search, limit: '1000', account })
}

function onlyMatch(noun: Noun, named: string, matching: readonly Named[], found: Found): string {
  const { id, plural } = NOUNS[noun]
  if (found.has_more)
    throw new Failure(`More than 1,000 ${plural} match ${quoted(named)}. Use the id of the ${noun}.`)
  const [only, ...others] = matching
  if (only === undefined) {
    const hint =
      found.data.length === 0 ? `\`tollgate ${plural} list\` lists them.` : listed('Did you mean', found.data)
    throw new Failure(`There is no ${noun} ${quoted(named)}. ${hint}`)
  }
  if (others.length > 0)
    throw new Failure(
      `Several ${plural} match ${quoted(named)}. ${listed(`Use the id of the ${noun}`, matching)}`,
    )
  // An id of another form could change the request path.
  if (!id.test(only.id))
    throw new Failure(`The gateway lists a malformed ${noun} id. Check --url and TOLLGATE_URL.`)
  return only.id
}

function matches({ name, prefix, last4 }: Exact<Key>, named: string): boolean {
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

function listed(heading: string, records: readonly Named[]): string {
  const lines = records.slice(0, LISTED_MAX).map((record) => {
    const { id, prefix, last4, status, created_at, name, email } = record
    const masked = prefix === undefined ? '' : `  ${prefix}…${last4}`
    const state = `${status}, created ${shownInstant(created_at)} UTC`
    return `  ${shownText(id + masked)}  ${state}  ${shownText(email ?? name, 40)}`
  })
  const more = records.length > LISTED_MAX ? [`  and ${records.length - LISTED_MAX} more`] : []
  return `${heading}:\n${[...lines, ...more].join('\n')}`
}

/** Quotes the text. It may be a whole key by mistake, which must not get into a log. */
function quoted(named: string): string {
  return `"${shownText(isKeyOrMasked(named) ? `${named.slice(0, PREFIX_CHARS)}…` : named, 60)}"`
}
