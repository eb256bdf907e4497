import type { IncomingHttpHeaders } from 'node:http'
import type { Behaviours } from './behaviours.ts'
import type { Identity } from './identity.ts'
import type { Memory } from './memory.ts'
import type { WorkClock } from './pace.ts'
import { Refusal } from './refusal.ts'
import type { Reply } from './reply.ts'

/** A request whose key was accepted and whose body has been read. */
export interface Call {
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
  /** The segment that the route's `*` stands for. */
  readonly param: string
  readonly behaviours: Behaviours
  readonly identity: Identity
  readonly requestId: string
  readonly memory: Memory
  readonly clock: WorkClock
}

export type Handler = (call: Call) => Reply

/** One page of a list: `limit` items after the item whose id is `after` (`after_id` on the Messages surface). */
export function pageOf<Item extends { readonly id: string }>(
  { query }: Call,
  items: readonly Item[],
  limitDefault = 20,
): { page: Item[]; ends: { has_more: boolean; first_id: string | null; last_id: string | null } } {
  const limit = Number(query.get('limit') ?? limitDefault)
  if (!Number.isInteger(limit) || limit < 1) throw new Refusal(400, 'limit: expected a positive integer')
  const after = query.get('after') ?? query.get('after_id')
  const start = after === null ? 0 : items.findIndex((item) => item.id === after) + 1
  const page = items.slice(start, start + limit)
  const has_more = start + limit < items.length
  return { page, ends: { has_more, first_id: page[0]?.id ?? null, last_id: page.at(-1)?.id ?? null } }
}
