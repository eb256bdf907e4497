import { z } from 'zod'
import { keyId } from '../management/fields.ts'
import { type KeyAnswer, keyAnswer, shownKey } from './key-answer.ts'
import type { ManagementClient } from './management-client.ts'
import { readAnswer } from './read-answer.ts'
import { Failure, UsageError } from './run-command.ts'
import { shownInstant, shownText } from './shown-text.ts'

export const KEY_HELP = `Which key
  <key> is its id, its name, its beginning (svc_live_Ab3dE9f) or its last four characters. Where several keys are called
  that, nothing is done and they are listed.
`

/** The only argument of a command that is about one key. */
export function onlyKey(positionals: readonly string[]): string {
  const [named, ...more] = positionals
  if (named === undefined || named === '' || more.length > 0)
    throw new UsageError('name one <key> by its id, its name, its beginning or its last four characters')
  return named
}

/**
 * The id of the key that was named: by its id, else by its name, else by how it begins or ends. What several keys are
 * called is refused, with all of them: a command must not end another key than the one that was meant.
 */
export async function findKey(client: ManagementClient, option: string, named: string): Promise<string> {
  if (keyId().safeParse(named).success) return named
  const found = await search(client, option, named)
  const matching = [
    found.filter(({ name }) => name === named),
    found.filter((key) => isLike(key, named)),
  ].find((keys) => keys.length > 0)
  if (matching === undefined)
    throw new Failure(`There is no key ${quoted(named)}.${listed('Did you mean', found)}`)
  const [only, ...others] = matching
  if (only === undefined || others.length > 0)
    throw new Failure(`${quoted(named)} could be several keys.${listed('Name one by its id', matching)}`)
  // An id that is none could be another path.
  return keyId().parse(only.id)
}

/** How much of a key is shown; the rest of it is nobody's business, not even a query's. */
const PREFIX_CHARS = 16
const PAGES_MAX = 100

const page = z.object({ data: z.array(keyAnswer), next: z.string().nullable() })

async function search(client: ManagementClient, option: string, named: string): Promise<KeyAnswer[]> {
  const text = isWhole(named) ? named.slice(0, PREFIX_CHARS) : named
  const found: KeyAnswer[] = []
  let after: string | undefined
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const query = { search: text, limit: '1000', after }
    const answer = await client.ask('GET', '/v1/keys', { query })
    const { data, next } = readAnswer(client, answer, page, { search: option })
    // Of those that are only near, some are enough.
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

/** A key as lists show it, `prefix…last4`, or all of it. */
function isWhole(named: string): boolean {
  return named.length > PREFIX_CHARS && /^[a-z][a-z0-9]*_live_/.test(named)
}

const LISTED_MAX = 10

function listed(heading: string, keys: readonly KeyAnswer[]): string {
  if (keys.length === 0) return ' `tollgate keys list` shows them all.'
  const lines = keys
    .slice(0, LISTED_MAX)
    .map(
      (key) =>
        `  ${key.id}  ${shownKey(key)}  ${key.status}, created ${shownInstant(key.created_at)}  ${shownText(key.name, 40)}`,
    )
  const more = keys.length > LISTED_MAX ? [`  and ${keys.length - LISTED_MAX} more`] : []
  return ` ${heading}:\n${[...lines, ...more].join('\n')}`
}

/** What was typed may be a key by mistake, and goes into nobody's log. */
function quoted(named: string): string {
  return `"${shownText(isWhole(named) ? `${named.slice(0, PREFIX_CHARS)}…` : named, 60)}"`
}
