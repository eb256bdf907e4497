import { addCredit } from './add-credit.ts'
import { createKey } from './create-key.ts'
import { getBalance } from './get-balance.ts'
import { getRequest } from './get-request.ts'
import { deleteKey, revokeKey } from './revoke-key.ts'
import type { Route } from './route.ts'

/** All endpoints of the service itself. */
export const routes: readonly Route[] = [createKey, revokeKey, deleteKey, getRequest, getBalance, addCredit]

export type FoundRoute =
  | { readonly kind: 'route'; readonly route: Route; readonly params: readonly string[] }
  | { readonly kind: 'other_methods'; readonly allowed: readonly string[] }
  | { readonly kind: 'none' }

/** A linear walk: there are a few routes, and none is on the hot path. */
export function findRoute(method: string, path: string): FoundRoute {
  const allowed: string[] = []
  for (const route of routes) {
    const params = matchTemplate(route.template, path)
    if (params === null) continue
    if (route.method === method) return { kind: 'route', route, params }
    allowed.push(route.method)
  }
  return allowed.length > 0 ? { kind: 'other_methods', allowed } : { kind: 'none' }
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
