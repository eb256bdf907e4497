import type { Actor } from '../../kernel/actor.ts'
import { createUlidSource } from '../../kernel/ids.ts'
import type { EventType } from '../../kernel/vocabulary.ts'
import { currentTime, type Operation } from './operation.ts'
import { sql } from './sql.ts'

/** Events: one row for each change and crossing, which is the activity log, and what webhooks deliver. */

export interface NewEvent {
  readonly accountId: string
  readonly type: EventType
  readonly actor: Actor
  /** API objects, as `api/objects.ts` writes them; never a secret. */
  readonly data: Readonly<Record<string, unknown>>
  /** For crossings: an event with the same text is recorded once in an account. */
  readonly once?: string
}

/**
 * Records an event, and a delivery for each webhook of the account that subscribes to it. To be called in the transaction
 * that causes the event. Returns the id; null if an event with the same `once` exists.
 */
export function* recordEvent(event: NewEvent, atMs: number): Operation<string | null> {
  const { accountId, type, actor, data, once = null } = event
  const nowMs = yield* currentTime(atMs)
  const id = `evt_${nextUlid(nowMs)}`
  const recorded = yield sql`
    INSERT INTO event (id, account_id, type, created_at_ms, actor_kind, actor_id, actor_name, data, once)
    VALUES (${id}, ${accountId}, ${type}, ${nowMs}, ${actor.kind}, ${actor.id}, ${actor.name}, ${JSON.stringify(data)},
      ${once})
    ON CONFLICT DO NOTHING RETURNING id`
  return recorded.length === 0 ? null : id
}

let ulidMs = 0
const ulids = createUlidSource({ nowMs: () => ulidMs, monotonicMs: () => ulidMs })

/** Ids of one process ascend, so that events of one transaction are listed in their order. */
function nextUlid(nowMs: number): string {
  ulidMs = nowMs
  return ulids()
}
