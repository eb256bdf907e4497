import { ANSWERS, type EndpointName } from '../api/answers.ts'
import type { AccountRule, RequiredRole } from './roles.ts'
import type { Method, Route, RouteParts } from './route.ts'

interface RowTraits {
  /** The kinds of the records in the path, in order. */
  readonly nouns?: readonly string[]
  /** Does not count as a change: whoever has lost a key must always be able to revoke it. */
  readonly isUnlimited?: true
  /** People of any role may do it with their own keys. */
  readonly isForOwn?: true
}

export interface OwnEndpoint extends RowTraits {
  readonly method: Method
  readonly path: `/${string}`
  /** The operation id of the OpenAPI document. */
  readonly id: string
  readonly role: RequiredRole
  readonly account: AccountRule
  readonly route: RouteParts<unknown, unknown>
  readonly answer: Route['answer']
}

/** A row of the table of own endpoints. Each column has a type of its own, so no two can be swapped. */
export function endpoint<M extends Method, Path extends OwnEndpoint['path']>(
  method: M,
  path: `${M} ${Path}` extends EndpointName ? Path : never,
  id: string,
  role: RequiredRole,
  account: AccountRule,
  route: OwnEndpoint['route'],
  traits: RowTraits = {},
): OwnEndpoint {
  const answer = ANSWERS[`${method} ${path}` as EndpointName]
  return { method, path, id, role, account, route, answer, ...traits }
}
