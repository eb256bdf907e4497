import { type Refusal, refuse } from '../kernel/errors.ts'

/** A request target that was judged. Both parts are exactly what the client sent; nothing is ever decoded. */
export interface Target {
  readonly path: string
  /** With its leading `?`, or empty. */
  readonly query: string
}

export type JudgedTarget =
  | { readonly kind: 'target'; readonly target: Target }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/**
 * Judges the target as it stands, on the part before `?`. Two parsers that disagree about a path are how one
 * endpoint's check is used to reach another, so whatever could be read in two ways is refused, not repaired.
 */
export function judgeTarget(rawTarget: string, host: string | undefined): JudgedTarget {
  const origin = toOriginForm(rawTarget, host)
  if (origin === null) return refused('the request target must be a path, or a URL of this host')
  const queryAt = origin.indexOf('?')
  const path = queryAt === -1 ? origin : origin.slice(0, queryAt)
  const problem = problemOf(path)
  if (problem !== null) return refused(`the request path has ${problem}`)
  return { kind: 'target', target: { path, query: queryAt === -1 ? '' : origin.slice(queryAt) } }
}

/** What paths are reached under our own names even when they are spelled with encoded slashes. */
export function decodeSlashes(path: string): string {
  return path.includes('%') ? path.replaceAll(/%2f/gi, '/') : path
}

function refused(message: string): JudgedTarget {
  return { kind: 'refused', refusal: refuse('bad_request', `Bad request target: ${message}.`) }
}

function toOriginForm(target: string, host: string | undefined): string | null {
  if (target.startsWith('/')) return target
  const absolute = /^https?:\/\/([^/?#]+)(.*)$/i.exec(target)
  if (absolute === null || host === undefined) return null
  const [, authority = '', rest = ''] = absolute
  if (authority.toLowerCase() !== host.toLowerCase()) return null
  return rest.startsWith('/') ? rest : `/${rest}`
}

/** Nothing of what follows can be in such a path, and nearly all are such. */
const PLAIN_PATH = /^(?:\/[\w-]+)+$/

function problemOf(path: string): string | null {
  if (PLAIN_PATH.test(path)) return null
  if (path.includes('//')) return 'an empty segment (`//`)'
  if (path.includes('#')) return 'a fragment (`#`)'
  if (path.includes('\\') || /%5c/i.test(path)) return 'a backslash'
  if (/[^\x21-\x7e]/.test(path)) return 'a blank, control or non-ASCII character'
  for (const segment of decodeSlashes(path).split('/')) {
    const plain = segment.replaceAll(/%2e/gi, '.')
    if (plain === '.' || plain === '..') return 'a dot segment'
  }
  return null
}
