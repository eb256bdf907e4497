import { z } from 'zod'
import { KEY_STATUSES } from '../kernel/vocabulary.ts'
import { KEY_SORTS, type KeyPlace, type KeyRecord, type KeySort } from '../keys/key-store.ts'
import {
  AFTER_EXPECTED,
  keyId,
  limitParameter,
  listObject,
  listSchema,
  textField,
  wordParameter,
} from './fields.ts'
import { keyObject, keySchema } from './keys.ts'
import { defineRoute, type Refused, refused, replyJson } from './route.ts'

export const listKeys = defineRoute({
  endpoint: 'GET /v1/keys',
  operationId: 'list_keys',
  summary: 'List API keys',
  query: z.strictObject({
    limit: limitParameter(),
    after: z
      .string()
      .max(1_000, AFTER_EXPECTED)
      .optional()
      .describe('The `next` of the page before, of the same sort.'),
    status: wordParameter('status', KEY_STATUSES, 'Only keys in this state.'),
    search: textField('search', 200)
      .optional()
      .describe('Part of a name in any case, of an id, of a prefix or of the last four characters.'),
    sort: wordParameter(
      'sort',
      ['created', ...KEY_SORTS],
      '`created`, which is the default, is newest first; `name` by the alphabet; `spent` by what was spent this month; ' +
        '`last_used` the last used first; `attention` what needs a look first: a spent cap, one that is nearly spent, an ' +
        'end within a week. Keys whose place changes between two pages may be on both or on neither.',
    ),
  }),
  success: { status: 200, schema: listSchema(keySchema) },
  async handle({ caller, query }, management) {
    const { status = null, search = null, sort = 'created', after = null, limit } = query
    const atMs = management.clock.nowMs()
    const asked = { accountId: caller.accountId, status, search, limit, atMs }
    const reply = (rows: readonly KeyRecord[], next: string | null) =>
      replyJson(
        200,
        listObject(
          rows.map((key) => keyObject(key, atMs, management)),
          next,
        ),
      )
    if (sort === 'created') {
      if (after !== null && !keyId().safeParse(after).success) return refusedPlace()
      const { rows, more } = await management.store.listKeys({ ...asked, after })
      return reply(rows, more ? (rows.at(-1)?.id ?? null) : null)
    }
    const place = after === null ? null : parsePlace(after, sort)
    if (after !== null && place === null) return refusedPlace()
    const { rows, next } = await management.store.listSortedKeys({ ...asked, sort, after: place })
    return reply(rows, next === null ? null : formatPlace(next, sort))
  },
})

const refusedPlace = (): Refused => refused('bad_request', AFTER_EXPECTED, 'after')

/** The sort is part of a place, so that the place cannot be used for another sort, where it would be a wrong place. */
function formatPlace({ by, id }: KeyPlace, sort: KeySort): string {
  return Buffer.from(JSON.stringify([sort, String(by), id])).toString('base64url')
}

/** Null: the place is of another sort, or was not made by us. */
function parsePlace(text: string, sort: KeySort): KeyPlace | null {
  let parts: unknown
  try {
    parts = JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch {
    return null
  }
  const [given, by, id] = Array.isArray(parts) ? parts : []
  if (given !== sort || typeof by !== 'string' || !keyId().safeParse(id).success) return null
  if (sort === 'name') return { by, id }
  return /^-?\d{1,18}$/.test(by) ? { by: BigInt(by), id } : null
}
