import type { Endpoint } from './endpoint.ts'
import { allEndpoints, endpointsAt, foldPath } from './find-endpoint.ts'

/** Longer paths are never plain, and get no suggestion: a caller needs no valid key to send them. */
const PATH_CHARS_MAX = 8_192

/** Escapes of `/`, `;`, `%` and control characters are not plain: servers differ on when they decode them. */
const PLAIN_PATH = /^(?:\/(?:[\w.~:-]|%(?!2f|3b|25|[01]|7f)[0-9a-f]{2})+)*\/?$/i

/** A path that is not sent upstream. `meant`: the endpoint that the client probably means. */
export interface Misspelled {
  readonly meant: Endpoint | null
}

/**
 * Whether a path outside of the tables might be another spelling of an endpoint. It would run there without being
 * metered, so only a plain path that resembles no endpoint is sent. GET is free, except where it issues a credential.
 */
export function findMisspelled(method: string, path: string): Misspelled | null {
  if (path.length > PATH_CHARS_MAX) return { meant: null }
  const isRead = method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
  if (isRead) {
    const meant = endpointsAt(`/v1/${segmentsOf(path).join('/').toLowerCase()}`)
    const paid = meant.find((endpoint) => endpoint.method === 'GET' && endpoint.billing !== 'free')
    return paid === undefined || method === 'OPTIONS' ? null : { meant: paid }
  }
  const meant = findMeant(method, path)
  return meant === null && PLAIN_PATH.test(path) ? null : { meant }
}

function findMeant(method: string, path: string): Endpoint | null {
  const folded = foldPath(path)
  for (const form of [folded, `/v1${folded}`, folded.replace(/^\/v1(?=\/)/, '')]) {
    const meant = endpointsAt(form).filter((endpoint) => endpoint.method !== 'WS')
    const [first] = meant
    if (first !== undefined) return meant.find((endpoint) => endpoint.method === method) ?? first
  }
  return null
}

const collections: ReadonlySet<string> = new Set(
  allEndpoints().flatMap(({ method, template, stateful }) =>
    method === 'GET' && stateful && !template.includes('{') ? template.slice('/v1/'.length) : [],
  ),
)

/** Whether the request lists stored objects: a collection path in any spelling. Ids contain digits. */
export function listsStoredObjects(endpoint: Endpoint | null, method: string, path: string): boolean {
  if ((method !== 'GET' && method !== 'HEAD') || (endpoint !== null && !endpoint.stateful)) return false
  // Servers differ on whether an encoded slash separates segments.
  const spellings = path.includes('%') ? [path, decodeFully(path)] : [path]
  return spellings.some((spelling) => {
    const segments = belowV1(spelling).map((segment) => segment.toLowerCase())
    if (collections.has(segments.join('/'))) return true
    return endpoint === null && !segments.some((segment) => /\d/.test(segment)) && segments[0] !== 'models'
  })
}

/** The segments below `/v1` as a lenient server reads them, in their own case, because ids have one. */
export function segmentsOf(path: string): readonly string[] {
  return belowV1(decodeFully(path))
}

/** Escaped dot segments are resolved. Ids and literals have only `[\w-]`, so any other character begins a suffix. */
function belowV1(path: string): readonly string[] {
  const segments: string[] = []
  for (const segment of path.split(/[/\\]/)) {
    const plain = decodeFully(segment)
    const text = Buffer.from(plain, 'latin1').toString('utf8').normalize('NFKC').trim()
    if (plain === '..') segments.pop()
    else if (plain !== '.') segments.push(/^[\w-]*/.exec(text)?.[0] ?? '')
  }
  return segments.filter((segment) => !/^(?:v1)?$/i.test(segment))
}

/** How often a path is decoded. Servers decode a path once or twice. */
const DECODED_LEVELS = 4

function decodeFully(text: string): string {
  // First decode percent signs that were themselves encoded, perhaps several times.
  let decoded = text.replaceAll(/%(?:25)+/g, '%')
  for (let level = 0; level < DECODED_LEVELS && decoded.includes('%'); level++)
    decoded = decoded.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    )
  return decoded
}
