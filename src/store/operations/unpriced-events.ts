import { createHash } from 'node:crypto'
import type { Actor } from '../../kernel/actor.ts'
import { limits } from '../../kernel/limits.ts'
import { number, present } from '../rows.ts'
import { recordEvent } from './events.ts'
import type { Operation } from './operation.ts'
import { sql } from './sql.ts'

/** A call of a model without a price. It passed at cost 0, or was refused because of the limits of its key. */
export interface UnpricedCall {
  readonly accountId: string
  readonly requestId: string
  /** Empty if the request names no model. */
  readonly model: string
  /** The UTC day of the call. */
  readonly day: string
  readonly refused: boolean
}

const prefixOf = ({ day }: UnpricedCall) => `unpriced/${day}/`

/** A digest of the model, because an entry of a PostgreSQL index has at most 2,704 bytes. */
const onceOf = (call: UnpricedCall) =>
  `${prefixOf(call)}${createHash('sha256').update(call.model).digest('base64url')}`

/** The first call of each account, day and model, in a fixed order, so that batches do not deadlock. */
export function firstUnpriced<T extends UnpricedCall>(calls: readonly T[]): readonly T[] {
  const firsts = new Map<string, T>()
  for (const call of calls) {
    const name = `${call.accountId} ${onceOf(call)}`
    if (!firsts.has(name)) firsts.set(name, call)
  }
  return [...firsts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, call]) => call)
}

/** Records `call.unpriced` once per account, day and model, for a limited number of models: clients invent names. */
export function* recordUnpriced(
  call: UnpricedCall,
  by: Actor | Operation<Actor>,
  atMs: number,
): Operation<void> {
  const { accountId, model, requestId, refused } = call
  const [prefix, once] = [prefixOf(call), onceOf(call)]
  const [row] = yield sql`
    SELECT count(*) AS models, coalesce(max(CASE WHEN once = ${once} THEN 1 ELSE 0 END), 0) AS known FROM event
    WHERE account_id = ${accountId} AND once >= ${prefix} AND once < ${`${prefix}\u{10ffff}`}`
  const isKnown = number(present(row), 'known') > 0
  if (isKnown || number(present(row), 'models') >= limits.unpricedModelsMax) return
  const actor = 'kind' in by ? by : yield* by
  const data = { model: model === '' ? null : model, request_id: requestId, refused }
  yield* recordEvent({ accountId, type: 'call.unpriced', actor, data, once }, atMs)
}
