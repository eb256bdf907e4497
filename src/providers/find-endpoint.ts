import { SURFACE_NAMES, type Surface } from '../kernel/vocabulary.ts'
import { type Endpoint, readEndpoints } from './endpoint.ts'
import { SURFACES } from './surfaces.ts'

const SLASH = 0x2f
const DOT = 0x2e

/** The endpoints of one template by method. The client chooses the method, so this is no plain object. */
type Methods = Map<string, Endpoint>

interface Node {
  readonly literals: Map<string, Node>
  param: Node | null
  methods: Methods | null
}

interface Directory {
  /** Templates without parameters: all inference is here, and found without splitting the path. */
  readonly fixed: Map<string, Methods>
  readonly root: Node
  readonly endpoints: readonly Endpoint[]
}

const directories = Object.fromEntries(
  SURFACE_NAMES.map((surface) => [
    surface,
    buildDirectory(readEndpoints(surface, SURFACES[surface].endpoints)),
  ]),
) as Readonly<Record<Surface, Directory>>

/** The surfaces of all paths without parameters. */
const surfacesOfFixed = new Map<string, readonly Surface[]>()
for (const { fixed } of Object.values(directories)) {
  for (const path of fixed.keys()) surfacesOfFixed.set(path, walkForSurfaces(path))
}

/**
 * A path that only one surface has decides. Where several surfaces or none have the path, the headers decide by which
 * the clients of a surface are known; `hasHeader` says whether the request has one.
 */
export function chooseSurface(path: string, hasHeader: (name: string) => boolean): Surface {
  const surfaces = surfacesOf(path)
  const [only] = surfaces
  if (only !== undefined && surfaces.length === 1) return only
  const known = SURFACE_NAMES.find((surface) => SURFACES[surface].clientHeaders.some(hasHeader))
  return known ?? DEFAULT_SURFACE
}

/** The surface whose clients send no header of their own. */
const DEFAULT_SURFACE: Surface = 'chat'

/**
 * The endpoint that the path names byte for byte, or null. `method` is the HTTP method, or `WS` for an
 * upgrade. A null is never permission: it says that nothing is known about what the call does or costs.
 */
export function findEndpoint(surface: Surface, method: string, path: string): Endpoint | null {
  const directory = directories[surface]
  const methods = directory.fixed.get(path) ?? walk(directory.root, path)
  return methods?.get(method) ?? null
}

/** The surfaces that have this path, with any method. */
export function surfacesOf(path: string): readonly Surface[] {
  return surfacesOfFixed.get(path) ?? walkForSurfaces(path)
}

/** Every row of every table, in their order. */
export function allEndpoints(): readonly Endpoint[] {
  return SURFACE_NAMES.flatMap((surface) => directories[surface].endpoints)
}

function walkForSurfaces(path: string): readonly Surface[] {
  return SURFACE_NAMES.filter((surface) => walk(directories[surface].root, path) !== null)
}

/**
 * A literal wins over a parameter for good: there is no way back to the parameter, so that the cost stays
 * linear and `/v1/threads/runs` can never pass for a thread.
 *
 * For the same reason no parameter takes a `%` or `;`, nor a segment that some servers take for a literal. An upstream
 * that decodes `/v1/threads/%72uns` or `/v1/threads/x%2fruns`, that drops the end of `/v1/threads/runs;a` or
 * `/v1/threads/runs.json`, or the case of `/v1/threads/RUNS`, starts a paid run, where a parameter would see the free
 * update of a thread.
 */
function walk(root: Node, path: string): Methods | null {
  if (path.charCodeAt(0) !== SLASH || path.includes('%') || path.includes(';')) return null
  let node = root
  let start = 1
  while (start <= path.length) {
    const slashAt = path.indexOf('/', start)
    const end = slashAt === -1 ? path.length : slashAt
    if (end === start) return null
    const segment = path.slice(start, end)
    const next: Node | null = node.literals.get(segment) ?? paramFor(node, segment)
    if (next === null) return null
    node = next
    start = end + 1
  }
  return node.methods
}

function paramFor({ param, literals }: Node, segment: string): Node | null {
  // A segment that begins with a dot is an ending and no id: /v1/chat/completions/.json
  if (param === null || segment.charCodeAt(0) === DOT) return null
  if (literals.size === 0) return param
  return literals.has(foldSegment(segment)) ? null : param
}

/** The segment as a server reads it that ignores case and everything from a dot on; literals have no capitals and no dots. */
function foldSegment(segment: string): string {
  const dotAt = segment.indexOf('.')
  return (dotAt === -1 ? segment : segment.slice(0, dotAt)).toLowerCase()
}

function buildDirectory(endpoints: readonly Endpoint[]): Directory {
  const fixed = new Map<string, Methods>()
  const root = newNode()
  for (const endpoint of endpoints) {
    const node = nodeOf(root, endpoint.template)
    node.methods ??= new Map()
    node.methods.set(endpoint.method, endpoint)
    if (!endpoint.template.includes('{')) fixed.set(endpoint.template, node.methods)
  }
  return { fixed, root, endpoints }
}

function nodeOf(root: Node, template: string): Node {
  let node = root
  for (const segment of template.slice(1).split('/')) {
    if (segment.startsWith('{')) {
      node.param ??= newNode()
      node = node.param
    } else {
      const next = node.literals.get(segment) ?? newNode()
      node.literals.set(segment, next)
      node = next
    }
  }
  return node
}

function newNode(): Node {
  return { literals: new Map(), param: null, methods: null }
}
