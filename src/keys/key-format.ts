import { randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { Secret } from '../kernel/secret.ts'

/** `<prefix>_live_` or `<prefix>_admin_`, 43 base62 characters of 256 random bits, and 6 of their CRC-32. */

export type KeyKind = 'live' | 'admin'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_CHARS = 43
const CHECKSUM_CHARS = 6
const OPAQUE = new RegExp(`^[0-9A-Za-z]{${RANDOM_CHARS + CHECKSUM_CHARS}}$`)

/** How many characters of a key may be shown. The others are far too many to guess. */
const SHOWN_PREFIX_CHARS = 16
const SHOWN_LAST_CHARS = 4

export function mintKey(servicePrefix: string, kind: KeyKind): Secret {
  const body = `${servicePrefix}_${kind}_${base62(BigInt(`0x${randomBytes(32).toString('hex')}`), RANDOM_CHARS)}`
  return new Secret(body + checksum(body))
}

/** Null: the text cannot be one of our keys. */
export function keyKindOf(text: string, servicePrefix: string): KeyKind | null {
  const kind = kindClaimed(text, servicePrefix)
  if (kind === null) return null
  const marker = servicePrefix.length + `_${kind}_`.length
  if (text.length !== marker + RANDOM_CHARS + CHECKSUM_CHARS || !OPAQUE.test(text.slice(marker))) return null
  const body = text.slice(0, -CHECKSUM_CHARS)
  return text.endsWith(checksum(body)) ? kind : null
}

/** Whether the text begins like one of our keys, even if it is malformed. */
export function claimsToBeOurs(text: string, servicePrefix: string): boolean {
  return kindClaimed(text, servicePrefix) !== null
}

function kindClaimed(text: string, servicePrefix: string): KeyKind | null {
  if (!text.startsWith(servicePrefix)) return null
  if (text.startsWith('_live_', servicePrefix.length)) return 'live'
  return text.startsWith('_admin_', servicePrefix.length) ? 'admin' : null
}

/** `prefix` is empty for a configured admin key, because its first characters may be half of the secret. */
export function shownParts(key: Secret, servicePrefix: string): { prefix: string; last4: string } {
  const text = key.reveal()
  const prefix = keyKindOf(text, servicePrefix) === null ? '' : text.slice(0, SHOWN_PREFIX_CHARS)
  return { prefix, last4: text.slice(-SHOWN_LAST_CHARS) }
}

function checksum(body: string): string {
  let text = ''
  let rest = crc32(body)
  for (let i = 0; i < CHECKSUM_CHARS; i++) {
    text = BASE62.charAt(rest % 62) + text
    rest = Math.floor(rest / 62)
  }
  return text
}

function base62(value: bigint, chars: number): string {
  let text = ''
  let rest = value
  while (rest > 0n) {
    text = BASE62[Number(rest % 62n)] + text
    rest /= 62n
  }
  return text.padStart(chars, '0')
}
