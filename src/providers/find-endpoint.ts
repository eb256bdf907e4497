import { SURFACE_NAMES, type Surface } from '../kernel/vocabulary.ts'
import { type Endpoint, readEndpoints } from './endpoint.ts'
import { SURFACES } from './surfaces.ts'

/** The endpoints of one template by method. A Map, because clients choose the method name. */
type Methods = Map<string, Endpoint>

interface Template {
  readonly segments: readonly (string | null)[]
  readonly methods: Methods
}

interface EndpointIndex {
  /** Templates without parameters, which include all inference, found without splitting the path. */
  readonly fixed: ReadonlyMap<string, Methods>
  readonly templates: readonly Template[]
  readonly endpoints: readonly Endpoint[]
}

const indexes = Object.fromEntries(
  SURFACE_NAMES.map((surface) => [surface, buildIndex(readEndpoints(surface, SURFACES[surface].endpoints))]),
) as Readonly<Record<Surface, EndpointIndex>>

const surfacesOfFixed = new Map<string, readonly Surface[]>()
for (const { fixed } of Object.values(indexes)) {
  for (const path of fixed.keys()) surfacesOfFixed.set(path, computeSurfaces(path))
}

/** The surface of a request: by the path if only one surface has it, else by the headers of the surfaces' clients. */
export function chooseSurface(path: string, hasHeader: (name: string) => boolean): Surface {
  const surfaces = surfacesOf(path)
  const [only] = surfaces
  if (only !== undefined && surfaces.length === 1) return only
  const known = SURFACE_NAMES.find((surface) => SURFACES[surface].clientHeaders.some(hasHeader))
  return known ?? DEFAULT_SURFACE
}

const DEFAULT_SURFACE: Surface = 'chat'

/** The endpoint whose template matches the path byte for byte. Null: the endpoint is unknown. */
export function findEndpoint(surface: Surface, method: string, path: string): Endpoint | null {
  const index = indexes[surface]
  const methods = index.fixed.get(path) ?? findMethods(index, path)
  return methods?.get(method) ?? null
}

export function surfacesOf(path: string): readonly Surface[] {
  return surfacesOfFixed.get(path) ?? computeSurfaces(path)
}

export function allEndpoints(): readonly Endpoint[] {
  return SURFACE_NAMES.flatMap((surface) => indexes[surface].endpoints)
}

function computeSurfaces(path: string): readonly Surface[] {
  return SURFACE_NAMES.filter((surface) => findMethods(indexes[surface], path) !== null)
}

/**
 * The methods of the template that matches a path. A literal wins over a parameter, so `/v1/threads/runs` is never a
 * thread id. A parameter does not match `%`, `;`, or a segment that a server could read as a literal: an upstream that
 * decodes `/v1/threads/%72uns`, strips `/v1/threads/runs.json` or lower-cases `/v1/threads/RUNS` would start a paid run.
 */
function findMethods({ templates }: EndpointIndex, path: string): Methods | null {
  if (!path.startsWith('/') || /[%;]|\/\/|\/$/.test(path)) return null
  const segments = path.slice(1).split('/')
  let matches = templates
  for (const [i, segment] of segments.entries()) {
    const exact = matches.filter((template) => template.segments[i] === segment)
    const plain = segment.replace(/\..*$/, '').toLowerCase()
    const mayBeId = plain !== '' && !matches.some((template) => template.segments[i] === plain)
    matches =
      exact.length > 0 || !mayBeId ? exact : matches.filter((template) => template.segments[i] === null)
    if (matches.length === 0) return null
  }
  return matches.find((template) => template.segments.length === segments.length)?.methods ?? null
}

function buildIndex(endpoints: readonly Endpoint[]): EndpointIndex {
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

const collections: ReadonlySet<string> = new Set(
  Object.values(indexes).flatMap(({ fixed }) =>
    [...fixed].flatMap(([path, methods]) => (methods.get('GET')?.stateful ? path.slice('/v1/'.length) : [])),
  ),
)

/** Whether the request lists stored objects: a collection path in any spelling. Ids contain digits. */
export function listsStoredObjects(endpoint: Endpoint | null, method: string, path: string): boolean {
  if ((method !== 'GET' && method !== 'HEAD') || (endpoint !== null && !endpoint.stateful)) return false
  const spellings = path.includes('%') ? [path, decode(path)] : [path]
  return spellings.some((spelling) => {
    const segments = foldPath(spelling).filter((segment) => segment !== '' && segment !== 'v1')
    if (collections.has(segments.join('/'))) return true
    return endpoint === null && !segments.some((segment) => /\d/.test(segment)) && segments[0] !== 'models'
  })
}

/**
 * The paid or credential-minting endpoint of either surface that a lenient server could read this path as: one that
 * decodes it (any number of times), ignores case, trailing slashes and whatever follows `;` or `.` in a segment, or has
 * another base URL. Only for paths outside the tables, and only to refuse calls.
 */
export function findLenientMatch(method: string, path: string): Endpoint | null {
  const lookupMethod = method === 'HEAD' ? 'GET' : method
  // Servers differ on whether an encoded slash separates segments.
  const found = findFolded(lookupMethod, path)
  return found ?? (path.includes('%') ? findFolded(lookupMethod, decode(path)) : null)
}

/** The segments below `/v1` as a lenient server reads them, in their own case, because ids have one. */
export function segmentsOf(path: string): readonly string[] {
  return foldPath(decode(path), (text) => text).filter((segment) => !/^(?:v1)?$/i.test(segment))
}

function findFolded(method: string, path: string): Endpoint | null {
  const segments = foldPath(path)
  // A server may take an empty segment for an id, or drop it: /v1/messages/;a=b
  return findBelowV1(method, segments) ?? findBelowV1(method, segments.filter(Boolean))
}

function findBelowV1(method: string, segments: readonly string[]): Endpoint | null {
  let start = 0
  while (segments[start] === 'v1') start++
  const found = findPaid(method, segments.slice(start))
  // The client's base URL is a whole endpoint: /v1/messages/v1/messages.
  return found ?? (start === 0 ? null : findPaid(method, segments.slice(segments.lastIndexOf('v1') + 1)))
}

function findPaid(method: string, path: readonly string[]): Endpoint | null {
  const fits = ({ segments, methods }: Template) =>
    (methods.get(method)?.billing ?? 'free') !== 'free' &&
    segments.length === path.length + 1 &&
    path.every((segment, i) => (segments[i + 1] ?? segment) === segment)
  const templates = Object.values(indexes).flatMap((index) => index.templates)
  return templates.find(fits)?.methods.get(method) ?? null
}

/** The segments as a lenient server compares them: escaped dot segments resolved, double slashes merged. */
function foldPath(path: string, fold = (text: string) => text.toLowerCase()): string[] {
  const folded: string[] = []
  for (const segment of path.split(/[/\\]/)) {
    const plain = decode(segment)
    if (plain === '..') folded.pop()
    else if (plain !== '' && plain !== '.') folded.push(headOf(fold(textOf(plain))))
  }
  return folded
}

/** Literals in the tables and ids have only [A-Za-z0-9_-], so any other character begins a suffix. */
function headOf(text: string): string {
  return /^[A-Za-z0-9_-]*/.exec(text)?.[0] ?? ''
}

/** Decodes UTF-8, because percent escapes are bytes of UTF-8. */
function textOf(segment: string): string {
  return Buffer.from(segment, 'latin1').toString('utf8').normalize('NFKC').trim()
}

/** How often a path is decoded. Servers decode a path once or twice. */
const DECODED_LEVELS = 4

function decode(text: string): string {
  // First decode percent signs that were themselves encoded, perhaps several times.
  let decoded = text.replaceAll(/%(?:25)+/g, '%')
  for (let level = 0; level < DECODED_LEVELS && decoded.includes('%'); level++)
    decoded = decoded.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    )
  return decoded
}
