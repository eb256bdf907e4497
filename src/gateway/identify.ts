import { timingSafeEqual } from 'node:crypto'
import { hasHeader, type RawHeaders, tokensOf } from '../http/raw-headers.ts'
import { type Refusal, refuse } from '../kernel/errors.ts'
import type { Secret } from '../kernel/secret.ts'
import { type Identity, refuseKey } from '../keys/identity.ts'
import type { DigestKey } from '../keys/key-digest.ts'
import { claimsToBeOurs, keyKindOf } from '../keys/key-format.ts'
import { CREDENTIAL_HEADERS, keyInHeader } from '../providers/credentials.ts'
import { chooseSurface, type Surface } from '../providers/surface.ts'

export interface IdentifyParts {
  readonly servicePrefix: string
  readonly digestKey: DigestKey
  /** An admin key given by the configuration may have any form, so it is known by its digest. */
  readonly bootstrapDigest: Buffer | null
}

export function surfaceOf(path: string, method: string, headers: RawHeaders): Surface {
  const announced = isPreflight(method, headers) ? tokensOf(headers, 'access-control-request-headers') : []
  return chooseSurface(path, {
    hasAnthropicVersion: hasHeader(headers, 'anthropic-version') || announced.includes('anthropic-version'),
    hasXApiKey: hasHeader(headers, 'x-api-key') || announced.includes('x-api-key'),
  })
}

export function identify(method: string, headers: RawHeaders, parts: IdentifyParts): Identity {
  const seen = new Map<string, string>()
  const keys = new Set<string>()
  for (let i = 0; i < headers.length; i += 2) {
    const name = (headers[i] ?? '').toLowerCase()
    if (!CREDENTIAL_HEADERS.has(name)) continue
    const value = headers[i + 1] ?? ''
    if ((seen.get(name) ?? value) !== value) {
      return refused(refuse('bad_request', `The header ${name} is there twice with different values.`))
    }
    seen.set(name, value)
    const key = keyInHeader(name, value)
    if (key !== null && isOurs(key, parts)) keys.add(key)
  }
  if (keys.size > 1)
    return refused(refuse('bad_request', 'The request carries two different keys; send one.'))
  const [key] = keys
  if (key !== undefined) {
    // A wrong checksum is told apart from an unknown key by nobody but us: no lookup, the same answer.
    const wellFormed = keyKindOf(key, parts.servicePrefix) !== null
    const digest = parts.digestKey(key)
    if (!wellFormed && !isBootstrap(digest, parts)) return refused(refuseKey('unknown_key'))
    return { kind: 'key', digest }
  }
  if (seen.size === 0 && isPreflight(method, headers)) return { kind: 'preflight' }
  if (seen.size > 0) return refused(refuseKey('unknown_key'))
  return refused(
    refuse(
      'invalid_api_key',
      'There is no API key. Send it as "Authorization: Bearer <key>" or as "x-api-key".',
    ),
  )
}

function isOurs(key: string, parts: IdentifyParts): boolean {
  return claimsToBeOurs(key, parts.servicePrefix) || isBootstrap(parts.digestKey(key), parts)
}

function isBootstrap(digest: Buffer, { bootstrapDigest }: IdentifyParts): boolean {
  return bootstrapDigest !== null && timingSafeEqual(digest, bootstrapDigest)
}

function isPreflight(method: string, headers: RawHeaders): boolean {
  return (
    method === 'OPTIONS' &&
    hasHeader(headers, 'origin') &&
    hasHeader(headers, 'access-control-request-method')
  )
}

function refused(refusal: Refusal): Identity {
  return { kind: 'refused', refusal }
}

/** The digest by which an admin key from the configuration is recognised. */
export function bootstrapDigestOf(key: Secret | null, digestKey: DigestKey): Buffer | null {
  return key === null ? null : digestKey(key.reveal())
}
