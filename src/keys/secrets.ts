import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { Secret } from '../kernel/secret.ts'
import type { Surface } from '../kernel/vocabulary.ts'

/** The pepper is outside the database. Keys have 256 random bits, so no slow hash is needed. */
export type DigestKey = (key: string) => Buffer

export function createKeyDigest(pepper: Secret): DigestKey {
  const secret = pepper.reveal()
  return (key) => createHmac('sha256', secret).update(key).digest()
}

/** A digest of a fixed text. The database has it too, so that a start detects a wrong pepper. */
export function pepperFingerprint(digest: DigestKey): string {
  return digest('tollgate: which pepper is this?').toString('hex').slice(0, 16)
}

const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** The first byte of an encrypted secret. */
const FORMAT_VERSION = 1

export type SecretSealer = ReturnType<typeof createSecretSealer>

/**
 * Encrypts secrets that must be read again, with AES-256-GCM and a key from the pepper. Binds each to its record. Each
 * purpose has its own key, so that a leaked key reveals no secrets of another purpose.
 */
export function createSecretSealer(pepper: Secret, purpose: string) {
  const key = Buffer.from(hkdfSync('sha256', pepper.reveal(), '', `tollgate ${purpose}`, KEY_BYTES))
  return {
    seal(secret: Secret, recordId: string): Buffer {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(recordId))
      const text = Buffer.concat([cipher.update(secret.reveal(), 'utf8'), cipher.final()])
      return Buffer.concat([Buffer.of(FORMAT_VERSION), nonce, cipher.getAuthTag(), text])
    },
    /** Throws if the bytes were changed, or were encrypted for another record or with another pepper. */
    open(sealed: Uint8Array, recordId: string): Secret {
      const bytes = Buffer.from(sealed)
      if (bytes[0] !== FORMAT_VERSION)
        throw new Error('this version cannot read the format of an encrypted secret')
      const [nonceEnd, tagEnd] = [1 + NONCE_BYTES, 1 + NONCE_BYTES + TAG_BYTES]
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(1, nonceEnd), {
        authTagLength: TAG_BYTES,
      })
      decipher.setAAD(Buffer.from(recordId)).setAuthTag(bytes.subarray(nonceEnd, tagEnd))
      return new Secret(decipher.update(bytes.subarray(tagEnd), undefined, 'utf8') + decipher.final('utf8'))
    },
  }
}

/** The record id that an account's upstream key is bound to. */
export function upstreamKeyRecord(accountId: string, surface: Surface, url: string): string {
  return `${accountId} ${surface} ${url}`
}
