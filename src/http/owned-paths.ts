import { decodeSlashes } from './target.ts'

/**
 * The paths that are ours. Under `/v1` exactly two, the rest where no upstream path can be. They are never
 * forwarded; everything else is.
 */
const OWNED_EXACT: ReadonlySet<string> = new Set([
  '/v1/keys',
  '/v1/usage',
  '/gateway',
  '/dashboard',
  '/healthz',
  '/readyz',
  '/metrics',
])
const OWNED_BELOW = ['/v1/keys/', '/gateway/', '/dashboard/']

export function isOwnedPath(path: string): boolean {
  return OWNED_EXACT.has(path) || OWNED_BELOW.some((start) => path.startsWith(start))
}

/** An owned path behind encoded slashes: a proxy in front or upstream may decode it, we must not forward it. */
export function hidesOwnedPath(path: string): boolean {
  const decoded = decodeSlashes(path)
  return decoded !== path && !isOwnedPath(path) && isOwnedPath(decoded)
}
