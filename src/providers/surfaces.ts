import type { Target } from '../http/judge-head.ts'
import { hasHeader, type RawHeaders } from '../http/raw-headers.ts'
import type { Secret } from '../kernel/secret.ts'
import type { Surface } from '../kernel/surface.ts'
import { chat } from './chat/surface.ts'
import type { UsageReader } from './endpoint.ts'
import { messages } from './messages/surface.ts'
import type { ReaderSpec, SurfaceSpec } from './surface.ts'

export const SURFACES: Readonly<Record<Surface, SurfaceSpec>> = { messages, chat }

const specs = Object.values(SURFACES)

/** Every kind of reply; each belongs to one surface. */
export const READERS: Readonly<Partial<Record<UsageReader, ReaderSpec>>> = Object.assign(
  {},
  ...specs.map((surface) => surface.readers),
)

/** Where clients of either surface put a key. All of them are looked at on both. */
export const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set(['authorization', 'x-api-key', 'api-key'])

export function carriesCredential(headers: RawHeaders): boolean {
  for (const name of CREDENTIAL_HEADERS) if (hasHeader(headers, name)) return true
  return false
}

/**
 * What the client says about an account that is not the one upstream will see: credentials of any kind, and the
 * selectors that would bill another organisation, project or workspace.
 */
export const CLIENT_ACCOUNT_HEADERS: ReadonlySet<string> = new Set([
  ...CREDENTIAL_HEADERS,
  'proxy-authorization',
  'cookie',
  ...specs.flatMap((surface) => surface.upstream.accountHeaders),
])

/** The header line that pays upstream. */
export function providerCredential(surface: Surface, key: Secret): readonly [name: string, value: string] {
  return SURFACES[surface].upstream.credential(key.reveal())
}

/** The key inside a credential header, or null if the header holds something else (`Basic …`, nothing). */
export function keyInHeader(lowerName: string, value: string): string | null {
  const text = value.trim()
  if (lowerName !== 'authorization') return text === '' ? null : text
  const bearer = /^bearer[ \t]+(\S.*)$/i.exec(text)
  return bearer?.[1]?.trim() ?? null
}

/** The target to ask upstream for. The client's text is put behind the configured path as it stands. */
export function upstreamTarget(surface: Surface, base: URL, target: Target): string {
  const basePath = base.pathname.endsWith('/') ? base.pathname.slice(0, -1) : base.pathname
  const path = SURFACES[surface].upstream.path(basePath, target.path)
  return (path === '' ? '/' : path) + target.query
}
