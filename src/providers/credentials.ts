import type { Secret } from '../kernel/secret.ts'
import type { Surface } from './surface.ts'

/** Where clients of either surface put a key. All of them are looked at on both. */
export const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set(['authorization', 'x-api-key', 'api-key'])

/**
 * What the client says about an account that is not the one upstream will see: credentials of any kind, and the
 * selectors that would bill another organisation, project or workspace.
 */
export const CLIENT_ACCOUNT_HEADERS: ReadonlySet<string> = new Set([
  ...CREDENTIAL_HEADERS,
  'proxy-authorization',
  'cookie',
  'openai-organization',
  'openai-project',
  'anthropic-workspace-id',
])

/** The header line that pays upstream. */
export function providerCredential(surface: Surface, key: Secret): readonly [name: string, value: string] {
  return surface === 'messages' ? ['x-api-key', key.reveal()] : ['Authorization', `Bearer ${key.reveal()}`]
}

/** The key inside a credential header, or null if the header holds something else (`Basic …`, nothing). */
export function keyInHeader(lowerName: string, value: string): string | null {
  const text = value.trim()
  if (lowerName !== 'authorization') return text === '' ? null : text
  const bearer = /^bearer[ \t]+(\S.*)$/i.exec(text)
  return bearer?.[1]?.trim() ?? null
}
