import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { Secret } from '../kernel/secret.ts'
import type { Surface } from '../kernel/vocabulary.ts'

/**
 * Secrets that have to be used again, unlike keys, which are only recognised: AES-256-GCM under a key that is derived from
 * the pepper, so that the database alone reveals no secret. Each secret is bound to its record, and opens nowhere else.
 */
export interface SecretSealer {
  seal(secret: Secret, recordId: string): Buffer
  /** Throws if the bytes were changed, or sealed for another record or under another pepper. */
  open(sealed: Uint8Array, recordId: string): Secret
}

const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** The first byte of a sealed secret, its version, so that another form can follow this one. */
const FORM = 1

/** Each purpose has a key of its own: a key that leaks opens no secret of another purpose. */
export function createSecretSealer(pepper: Secret, purpose: string): SecretSealer {
  const key = Buffer.from(hkdfSync('sha256', pepper.reveal(), '', `tollgate ${purpose}`, KEY_BYTES))
  return {
    seal(secret, recordId) {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(recordId))
      const text = Buffer.concat([cipher.update(secret.reveal(), 'utf8'), cipher.final()])
      return Buffer.concat([Buffer.of(FORM), nonce, cipher.getAuthTag(), text])
    },
    open(sealed, recordId) {
      const bytes = Buffer.from(sealed)
      if (bytes[0] !== FORM) throw new Error('a sealed secret has a form that this version does not know')
      const [nonceEnd, tagEnd] = [1 + NONCE_BYTES, 1 + NONCE_BYTES + TAG_BYTES]
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(1, nonceEnd), {
        authTagLength: TAG_BYTES,
      })
      decipher.setAAD(Buffer.from(recordId)).setAuthTag(bytes.subarray(nonceEnd, tagEnd))
      return new Secret(decipher.update(bytes.subarray(tagEnd), undefined, 'utf8') + decipher.final('utf8'))
    },
  }
}

/** The record that the key of an account's own upstream is bound to. */
export function upstreamKeyRecord(accountId: string, surface: Surface, url: string): string {
  return `${accountId} ${surface} ${url}`
}
