import { timingSafeEqual } from 'node:crypto'
import type { Exchange } from '../http/exchange.ts'
import { firstValue, hasHeader, isNamed, type RawHeaders, tokensOf } from '../http/raw-headers.ts'
import { type Refusal, refuse } from '../kernel/errors.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import { type Credential, refuseKey } from '../keys/credential.ts'
import { claimsToBeOurs, keyKindOf } from '../keys/key-format.ts'
import type { DigestKey } from '../keys/secrets.ts'
import { CREDENTIAL_HEADERS, keyInHeader, keysInProtocols } from '../providers/credentials.ts'
import { chooseSurface } from '../providers/find-endpoint.ts'

export interface CredentialOptions {
  readonly servicePrefix: string
  readonly digestKey: DigestKey
  /** A configured admin key may have any form, so it is recognised by its digest. */
  readonly bootstrapDigest: Buffer | null
}

/** The surface of a request. Nearly every path decides it alone; headers are read only for the others. */
export function surfaceOf(path: string, method: string, headers: RawHeaders): Surface {
  return chooseSurface(path, (name) => {
    if (hasHeader(headers, name)) return true
    if (!isPreflight(method, headers)) return false
    return tokensOf(headers, 'access-control-request-headers').includes(name)
  })
}

export function parseCredential(
  { method, headers, req }: Pick<Exchange, 'method' | 'headers' | 'req'>,
  options: CredentialOptions,
  isHandshake = false,
): Credential {
  let credentials = 0
  const keys: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    const name = credentialNamed(headers[i] ?? '')
    if (name === null) continue
    const value = headers[i + 1] ?? ''
    if (credentials > 0 && firstValue(headers, name) !== value) {
      return refused(refuse('bad_request', `The header ${name} has two different values. Send one.`))
    }
    credentials += 1
    const found = keyInHeader(name, value)
    if (found !== null && isOurs(found, options)) keys.push(found)
  }
  for (const found of isHandshake ? keysInProtocols(headers) : []) {
    credentials += 1
    if (isOurs(found, options)) keys.push(found)
  }
  const [key] = keys
  if (keys.length > 1 && keys.some((other) => other !== key))
    return refused(refuse('bad_request', 'The request has two different keys. Send one.'))
  if (key !== undefined) {
    const digest = req.source.memory.digestOf(key, (text) => digestOf(text, options))
    return digest === null ? refused(refuseKey('unknown_key')) : { kind: 'key', digest }
  }
  if (credentials === 0 && isPreflight(method, headers)) return { kind: 'preflight' }
  const bare = firstValue(headers, 'authorization')
  if (bare !== undefined && isOurs(bare, options)) return refused(refuseKey('bare_key'))
  return { kind: 'refused', refusal: refuseKey(credentials > 0 ? 'unknown_key' : 'no_key'), hasKey: false }
}

/** The digest of one of our keys, else null. A key with a wrong checksum is refused without a lookup. */
function digestOf(key: string, options: CredentialOptions): Buffer | null {
  const wellFormed = keyKindOf(key, options.servicePrefix) !== null
  const digest = options.digestKey(key)
  return wellFormed || isBootstrap(digest, options) ? digest : null
}

const CREDENTIALS = [...CREDENTIAL_HEADERS]

function credentialNamed(line: string): string | null {
  for (const name of CREDENTIALS) if (isNamed(line, name)) return name
  return null
}

function isOurs(key: string, options: CredentialOptions): boolean {
  return claimsToBeOurs(key, options.servicePrefix) || isBootstrap(options.digestKey(key), options)
}

function isBootstrap(digest: Buffer, { bootstrapDigest }: CredentialOptions): boolean {
  return bootstrapDigest !== null && timingSafeEqual(digest, bootstrapDigest)
}

function isPreflight(method: string, headers: RawHeaders): boolean {
  return (
    method === 'OPTIONS' &&
    hasHeader(headers, 'origin') &&
    hasHeader(headers, 'access-control-request-method')
  )
}

function refused(refusal: Refusal): Credential {
  return { kind: 'refused', refusal, hasKey: true }
}
