import { hash } from 'node:crypto'
import type { Secret } from '../kernel/secret.ts'

/**
 * Keys are stored as HMAC-SHA-256 under a pepper that lives outside the database: a copy of the database alone
 * neither reveals a key nor lets anyone test a guess. Keys have 256 random bits, so no slow hash is needed, and
 * the digest can be looked up by index.
 */
export type DigestKey = (key: string) => Buffer

/** The block size of SHA-256. */
const BLOCK_BYTES = 64
const DIGEST_BYTES = 32
/** Our keys have about 60 characters; a key of more than this is digested in a buffer of its own. */
const KEY_CHARS_MAX = 256
const UTF8_BYTES_PER_CHAR_MAX = 3

/**
 * HMAC as RFC 2104 defines it, from two plain hashes in buffers that are used again and again. An object of
 * `createHmac` takes 5.7 µs and work for the garbage collector at every request, the two hashes take 2 µs.
 */
export function createKeyDigest(pepper: Secret): DigestKey {
  const inner = padded(pepper, 0x36, KEY_CHARS_MAX * UTF8_BYTES_PER_CHAR_MAX)
  const outer = padded(pepper, 0x5c, DIGEST_BYTES)
  // Our keys are all of one length, so the view of the buffer that one key takes fits the next key as well.
  let begun = inner
  const put = (key: string): Buffer => {
    const end = BLOCK_BYTES + inner.write(key, BLOCK_BYTES)
    if (begun.length !== end) begun = inner.subarray(0, end)
    return begun
  }
  return (key) => {
    const text = key.length > KEY_CHARS_MAX ? paddedBefore(pepper, key) : put(key)
    outer.write(hash('sha256', text, 'binary'), BLOCK_BYTES, 'latin1')
    return ownBytes(hash('sha256', outer, 'binary'))
  }
}

/** A buffer outside of Node's pool: a digest lives as long as its call, and would retain 64 KiB of the pool. */
function ownBytes(digest: string): Buffer {
  const bytes = Buffer.alloc(DIGEST_BYTES)
  for (let i = 0; i < DIGEST_BYTES; i++) bytes[i] = digest.charCodeAt(i)
  return bytes
}

function paddedBefore(pepper: Secret, key: string): Buffer {
  const bytes = padded(pepper, 0x36, Buffer.byteLength(key))
  bytes.write(key, BLOCK_BYTES)
  return bytes
}

/** The secret, filled up with zeros to a block or hashed if it is longer, and room behind it for the text to hash. */
function padded(pepper: Secret, pad: number, roomBytes: number): Buffer {
  const secret = Buffer.from(pepper.reveal(), 'utf8')
  const bytes = Buffer.alloc(BLOCK_BYTES + roomBytes)
  const short = secret.length > BLOCK_BYTES ? hash('sha256', secret, 'buffer') : secret
  for (let i = 0; i < BLOCK_BYTES; i++) bytes[i] = (short[i] ?? 0) ^ pad
  return bytes
}

/** A digest of a fixed text. Stored with the keys, it detects a wrong pepper at start, before every key seems unknown. */
export function pepperFingerprint(digest: DigestKey): string {
  return digest('tollgate: which pepper is this?').toString('hex').slice(0, 16)
}
