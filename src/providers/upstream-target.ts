import type { Target } from '../http/judge-head.ts'
import type { Surface } from './surface.ts'

/**
 * The target to ask upstream for. The Messages URL ends where the host's own paths begin, the Chat URL where the
 * SDK's base URL ends (…/v1), so `/v1/chat/completions` becomes `<chat url>/chat/completions`. The client's text is
 * put behind the configured path as it stands.
 */
export function upstreamTarget(surface: Surface, base: URL, target: Target): string {
  const basePath = base.pathname.endsWith('/') ? base.pathname.slice(0, -1) : base.pathname
  const path = surface === 'messages' ? basePath + target.path : chatPath(basePath, target.path)
  return (path === '' ? '/' : path) + target.query
}

function chatPath(basePath: string, path: string): string {
  if (path === '/v1') return basePath
  if (path.startsWith('/v1/')) return basePath + path.slice('/v1'.length)
  // A path beside /v1: ask for it beside the base URL's own /v1.
  return (basePath.endsWith('/v1') ? basePath.slice(0, -'/v1'.length) : basePath) + path
}
