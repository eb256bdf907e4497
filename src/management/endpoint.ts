import type { AccountRule, RequiredRole } from './roles.ts'
import type { Method, RouteParts } from './route.ts'

/** A row of the table of own endpoints. `id` is the operation id of the OpenAPI document. */
export interface OwnEndpoint {
  readonly id: string
  readonly method: Method
  readonly path: `/${string}`
  readonly role: RequiredRole
  readonly account: AccountRule
  /** The kinds of the records in the path, in order. */
  readonly nouns?: readonly string[]
  /** Does not count as a change: whoever has lost a key must always be able to revoke it. */
  readonly isUnlimited?: true
  /** People of any role may do it with their own keys. */
  readonly isForOwn?: true
  readonly route: RouteParts<unknown, unknown>
}
