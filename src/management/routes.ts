import { addCredit } from './add-credit.ts'
import { createKey } from './create-key.ts'
import { deleteKey } from './delete-key.ts'
import { getBalance } from './get-balance.ts'
import { getBodies } from './get-bodies.ts'
import { getKey } from './get-key.ts'
import { getOpenApi } from './get-openapi.ts'
import { getOwnKey } from './get-own-key.ts'
import { getRequest } from './get-request.ts'
import { getUsage } from './get-usage.ts'
import { listKeyRequests } from './list-key-requests.ts'
import { listKeys } from './list-keys.ts'
import { listRequests } from './list-requests.ts'
import { revokeKey } from './revoke-key.ts'
import { rotateKey } from './rotate-key.ts'
import type { Route } from './route.ts'
import { updateKey } from './update-key.ts'

/** All endpoints of the service itself. */
export const routes: readonly Route[] = [
  createKey,
  listKeys,
  getOwnKey,
  getKey,
  updateKey,
  deleteKey,
  revokeKey,
  rotateKey,
  getUsage,
  listKeyRequests,
  listRequests,
  getRequest,
  getBodies,
  getBalance,
  addCredit,
  getOpenApi(() => routes),
]

export type FoundRoute =
  | { readonly kind: 'route'; readonly route: Route; readonly params: readonly string[] }
  | { readonly kind: 'other_methods'; readonly allowed: readonly string[] }
  | { readonly kind: 'none' }

/** A linear walk: there are a few routes, and none is on the hot path. HEAD is GET, of which no body is sent. */
export function findRoute(method: string, path: string): FoundRoute {
  const matching = routes.flatMap((route) => {
    const params = matchTemplate(route.template, path)
    return params === null ? [] : [{ kind: 'route' as const, route, params }]
  })
  // A path that is a template by itself is no other one's parameter: `me` is not the id of a key.
  const exact = matching.filter(({ params }) => params.length === 0)
  const candidates = exact.length > 0 ? exact : matching
  const asked = method === 'HEAD' ? 'GET' : method
  const found = candidates.find(({ route }) => route.method === asked)
  if (found !== undefined) return found
  if (candidates.length === 0) return { kind: 'none' }
  const allowed = candidates.flatMap(({ route }) =>
    route.method === 'GET' ? ['GET', 'HEAD'] : [route.method],
  )
  return { kind: 'other_methods', allowed }
}

function matchTemplate(template: string, path: string): string[] | null {
  const wanted = template.split('/')
  const given = path.split('/')
  if (wanted.length !== given.length) return null
  const params: string[] = []
  for (const [i, segment] of wanted.entries()) {
    const value = given[i] ?? ''
    if (!segment.startsWith('{')) {
      if (segment !== value) return null
    } else if (value === '') return null
    else params.push(value)
  }
  return params
}
