/** Who caused a change, in events and ledger entries. A session has the id and name of its key. */
export interface Actor {
  readonly kind: ActorKind
  readonly id: string | null
  readonly name: string | null
}

export const ACTOR_KINDS = ['admin_key', 'session', 'person', 'api_key', 'command_line', 'system'] as const
export type ActorKind = (typeof ACTOR_KINDS)[number]

export const COMMAND_LINE: Actor = { kind: 'command_line', id: null, name: null }
export const SYSTEM: Actor = { kind: 'system', id: null, name: null }
