import type { Caller } from '../keys/credential.ts'

/** Roles in ascending order. Each role may do everything that the earlier ones may do; a member, with own records only. */
const RANKS = ['api_key', 'member', 'viewer', 'admin', 'operator'] as const
export type Role = (typeof RANKS)[number]

/** The lowest role that may call an endpoint. `session`: every session may. `anyone`: no credential is needed. */
export type RequiredRole = Role | 'session' | 'anyone'

/**
 * The account that an endpoint acts in. Admins and viewers act in their own; operators may name another with `account=`.
 * - `none`: no account, and `account=` is refused
 * - `one`: the named account, else `default`
 * - `many`: as `one`, and `account=*` is all accounts
 * - `of_id`: the account of the id in the path
 */
export type AccountRule = 'none' | 'one' | 'many' | 'of_id'

export function roleOf(caller: Caller): Role {
  return caller.kind === 'api_key' ? 'api_key' : caller.role
}

export function isAtLeast(role: Role, required: Role): boolean {
  return RANKS.indexOf(role) >= RANKS.indexOf(required)
}
