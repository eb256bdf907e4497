import { SURFACE_NAMES, type Surface } from '../kernel/vocabulary.ts'
import type { Endpoint } from './endpoint.ts'
import { SURFACES } from './surfaces.ts'

/** The endpoints of one template by method. A Map, because clients choose the method name. */
type ByMethod = Map<string, Endpoint>

interface Pattern {
  readonly segments: readonly (string | null)[]
  readonly methods: ByMethod
}

interface EndpointIndex {
  /** Templates without parameters, which include all inference, found without splitting the path. */
  readonly fixed: ReadonlyMap<string, ByMethod>
  readonly templates: readonly Pattern[]
  readonly endpoints: readonly Endpoint[]
}

const indexes = Object.fromEntries(
  SURFACE_NAMES.map((surface) => [surface, buildIndex(endpointsOf(surface))]),
) as Readonly<Record<Surface, EndpointIndex>>

function endpointsOf(surface: Surface): Endpoint[] {
  return SURFACES[surface].endpoints.flatMap(({ methods, ...terms }) =>
    methods.map((method) => ({ ...terms, surface, method })),
  )
}

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
 * thread id. Nor is `/v1/threads/RUNS` or `/v1/threads/thread_1%2fruns`: a server that ignores case or decodes the path
 * would start a paid run. Otherwise a parameter may contain anything.
 */
function findMethods(index: EndpointIndex, path: string): ByMethod | null {
  const found = matchTemplate(index, path)
  if (found === null || !/[%A-Z]/.test(path)) return found
  const folded = matchTemplate(index, foldPath(path))
  return folded === null || folded === found ? found : null
}

function matchTemplate({ templates }: EndpointIndex, path: string): ByMethod | null {
  const [root, ...segments] = path.split('/')
  if (root !== '' || segments.includes('')) return null
  let matches = templates
  for (const [i, segment] of segments.entries()) {
    const exact = matches.filter((template) => template.segments[i] === segment)
    matches = exact.length > 0 ? exact : matches.filter((template) => template.segments[i] === null)
    if (matches.length === 0) return null
  }
  return matches.find((template) => template.segments.length === segments.length)?.methods ?? null
}

/** The path as upstream may compare it: decoded, in lower case, without a final slash. */
export function foldPath(path: string): string {
  return decodeOnce(path).toLowerCase().replace(/\/$/, '')
}

function decodeOnce(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

/** The endpoints of either surface whose template matches the folded path. */
export function endpointsAt(path: string): readonly Endpoint[] {
  return SURFACE_NAMES.flatMap((surface) => [...(matchTemplate(indexes[surface], path)?.values() ?? [])])
}

function buildIndex(endpoints: readonly Endpoint[]): EndpointIndex {
  const byPattern = new Map<string, Pattern>()
  const fixed = new Map<string, ByMethod>()
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
