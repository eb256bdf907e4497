import type { Endpoint } from './endpoint.ts'

/** The model that the path names, if the endpoint has it there. `path` must be one that found the endpoint. */
export function modelInPath(endpoint: Endpoint, path: string): string | null {
  if (endpoint.model !== 'path') return null
  return path.split('/')[endpoint.template.split('/').indexOf('{model}')] ?? null
}
