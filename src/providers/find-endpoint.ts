import { SURFACE_NAMES, type Surface } from '../kernel/vocabulary.ts'
import { type Endpoint, readEndpoints } from './endpoint.ts'
import { SURFACES } from './surfaces.ts'

/** The endpoints of one template by method. The client chooses the method, so this is no plain object. */
type Methods = Map<string, Endpoint>

interface Template {
  readonly segments: readonly (string | null)[]
  readonly methods: Methods
}

interface Directory {
  /** Templates without parameters: all inference is here, and found without splitting the path. */
  readonly fixed: ReadonlyMap<string, Methods>
  readonly templates: readonly Template[]
  readonly endpoints: readonly Endpoint[]
}

const directories = Object.fromEntries(
  SURFACE_NAMES.map((surface) => [
    surface,
    buildDirectory(readEndpoints(surface, SURFACES[surface].endpoints)),
  ]),
) as Readonly<Record<Surface, Directory>>

const surfacesOfFixed = new Map<string, readonly Surface[]>()
for (const { fixed } of Object.values(directories)) {
  for (const path of fixed.keys()) surfacesOfFixed.set(path, walkForSurfaces(path))
}

/** A path that only one surface has decides, else the headers by which the clients of a surface are known. */
export function chooseSurface(path: string, hasHeader: (name: string) => boolean): Surface {
  const surfaces = surfacesOf(path)
  const [only] = surfaces
  if (only !== undefined && surfaces.length === 1) return only
  const known = SURFACE_NAMES.find((surface) => SURFACES[surface].clientHeaders.some(hasHeader))
  return known ?? DEFAULT_SURFACE
}

const DEFAULT_SURFACE: Surface = 'chat'

/** The endpoint that the path names byte for byte. Null is no permission: nothing is known about the call. */
export function findEndpoint(surface: Surface, method: string, path: string): Endpoint | null {
  const directory = directories[surface]
  const methods = directory.fixed.get(path) ?? walk(directory, path)
  return methods?.get(method) ?? null
}

export function surfacesOf(path: string): readonly Surface[] {
  return surfacesOfFixed.get(path) ?? walkForSurfaces(path)
}

export function allEndpoints(): readonly Endpoint[] {
  return SURFACE_NAMES.flatMap((surface) => directories[surface].endpoints)
}

function walkForSurfaces(path: string): readonly Surface[] {
  return SURFACE_NAMES.filter((surface) => walk(directories[surface], path) !== null)
}

/**
 * A literal wins over a parameter for good, so that `/v1/threads/runs` can never pass for a thread. For the same reason no
 * parameter takes a `%` or `;`, nor a segment that some servers take for a literal: an upstream that decodes
 * `/v1/threads/%72uns`, drops the end of `/v1/threads/runs.json` or the case of `/v1/threads/RUNS` starts a paid run.
 */
function walk({ templates }: Directory, path: string): Methods | null {
  if (!path.startsWith('/') || /[%;]|\/\/|\/$/.test(path)) return null
  const segments = path.slice(1).split('/')
  let left = templates
  for (const [i, segment] of segments.entries()) {
    const exact = left.filter((template) => template.segments[i] === segment)
    const plain = segment.replace(/\..*$/, '').toLowerCase()
    const mayBeId = plain !== '' && !left.some((template) => template.segments[i] === plain)
    left = exact.length > 0 || !mayBeId ? exact : left.filter((template) => template.segments[i] === null)
    if (left.length === 0) return null
  }
  return left.find((template) => template.segments.length === segments.length)?.methods ?? null
}

function buildDirectory(endpoints: readonly Endpoint[]): Directory {
  const byPattern = new Map<string, Template>()
  const fixed = new Map<string, Methods>()
  for (const endpoint of endpoints) {
    const pattern = endpoint.template.replaceAll(/\{[^}]*\}/g, '{}')
    const segments = pattern.split('/').slice(1)
    const template = byPattern.get(pattern) ?? {
      segments: segments.map((segment) => (segment === '{}' ? null : segment)),
      methods: new Map(),
    }
    byPattern.set(pattern, template)
    template.methods.set(endpoint.method, endpoint)
    if (!pattern.includes('{')) fixed.set(pattern, template.methods)
  }
  return { fixed, templates: [...byPattern.values()], endpoints }
}

interface PaidEndpoint {
  readonly endpoint: Endpoint
  readonly segments: readonly (string | null)[]
}

const paidEndpoints: readonly PaidEndpoint[] = allEndpoints()
  .filter(({ billing }) => billing !== 'free')
  .map((endpoint) => ({ endpoint, segments: segmentsOf(endpoint) }))

const collections: ReadonlySet<string> = new Set(
  allEndpoints()
    .filter(({ method, template, stateful }) => method === 'GET' && stateful && !template.includes('{'))
    .map((endpoint) => segmentsOf(endpoint).join('/')),
)

/** Whether the request lists stored objects: a collection in any spelling. Ids have digits. */
export function listsStored(endpoint: Endpoint | null, method: string, path: string): boolean {
  if ((method !== 'GET' && method !== 'HEAD') || (endpoint !== null && !endpoint.stateful)) return false
  const spellings = path.includes('%') ? [path, decode(path)] : [path]
  return spellings.some((spelling) => {
    const segments = foldPath(spelling).filter((segment) => segment !== '' && segment !== 'v1')
    if (collections.has(segments.join('/'))) return true
    return endpoint === null && !segments.some((segment) => /\d/.test(segment)) && segments[0] !== 'models'
  })
}

function segmentsOf({ template }: Endpoint): (string | null)[] {
  return template
    .split('/')
    .slice(2)
    .map((segment) => (segment.startsWith('{') ? null : segment))
}

/**
 * The paid or credential-minting endpoint of either surface that some server takes the path for: a server that decodes the
 * path, however often it was encoded, that ignores case, trailing slashes and what follows a `;` or `.` in a segment, or
 * that has another base URL. To be asked only for paths that no table has; the answer may only ever be used against a call.
 */
export function findMeant(method: string, path: string): Endpoint | null {
  const asked = method === 'HEAD' ? 'GET' : method
  // Servers differ on whether an encoded slash separates segments.
  const found = findFolded(asked, path)
  return found ?? (path.includes('%') ? findFolded(asked, decode(path)) : null)
}

/** The path of an object as read by a server that decodes paths and drops trailing slashes and what follows a `;`. */
export function plainPath(path: string): string {
  if (!/[%;]|\/$/.test(path)) return path
  return decode(path)
    .replaceAll(/;[^/]*/g, '')
    .replace(/\/+$/, '')
}

function findFolded(method: string, path: string): Endpoint | null {
  const segments = foldPath(path)
  // A segment that is empty once it is folded is an odd id, or no segment at all: /v1/messages/;a=b
  return findBehindV1(method, segments) ?? findBehindV1(method, segments.filter(Boolean))
}

function findBehindV1(method: string, segments: readonly string[]): Endpoint | null {
  let start = 0
  while (segments[start] === 'v1') start++
  const found = findPaid(method, segments.slice(start))
  // A base URL that was the whole path of an endpoint: /v1/messages/v1/messages.
  return found ?? (start === 0 ? null : findPaid(method, segments.slice(segments.lastIndexOf('v1') + 1)))
}

function findPaid(method: string, path: readonly string[]): Endpoint | null {
  const fits = ({ endpoint, segments }: PaidEndpoint) =>
    endpoint.method === method &&
    segments.length === path.length &&
    segments.every((segment, i) => segment === null || segment === path[i])
  return paidEndpoints.find(fits)?.endpoint ?? null
}

/** The segments as a lenient server compares them. Escaped dot segments are resolved, doubled slashes are passed over. */
function foldPath(path: string): string[] {
  const folded: string[] = []
  for (const segment of path.split(/[/\\]/)) {
    const plain = decode(segment)
    if (plain === '..') folded.pop()
    else if (plain !== '' && plain !== '.') folded.push(foldSegment(plain))
  }
  return folded
}

/** Literals of the tables consist of [a-z0-9_-] alone, so any other character begins an ending. */
function foldSegment(segment: string): string {
  // Escapes stand for bytes of UTF-8.
  const text = Buffer.from(segment, 'latin1').toString('utf8').normalize('NFKC').trim().toLowerCase()
  return /^[a-z0-9_-]*/.exec(text)?.[0] ?? ''
}

/** Resolves every escape in one pass and in place: a path can hold 20,000 levels of them. */
function decode(text: string): string {
  if (!text.includes('%')) return text
  const bytes = Buffer.from(text, 'latin1')
  let length = 0
  for (let i = 0; i < bytes.length; i++) {
    bytes[length++] = bytes[i] ?? 0
    while (length >= 3 && bytes[length - 3] === PERCENT) {
      const high = hexDigit(bytes[length - 2] ?? 0)
      const low = hexDigit(bytes[length - 1] ?? 0)
      if (high === -1 || low === -1) break
      length -= 2
      bytes[length - 1] = high * 16 + low
    }
  }
  return bytes.toString('latin1', 0, length)
}

const PERCENT = 0x25

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  const small = code | 0x20
  return small >= 0x61 && small <= 0x66 ? small - 0x57 : -1
}
