import { createHash, randomBytes } from 'node:crypto'

// Ids and times of one request. In a deterministic simulator both follow from the request itself, so
// that the same request sent twice gets the same bytes; otherwise they are as unique as upstream's.

export interface Identity {
  /** `length` characters of base 62. */
  base62(length: number): string
  hex(length: number): string
  now(): Date
}

const base62Alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const deterministicNow = new Date('2026-11-15T12:00:00.000Z')

function createIdentity(seed: Uint8Array, now: () => Date): Identity {
  let drawn = 0
  const draw = (): Buffer => {
    drawn += 1
    return createHash('sha512').update(seed).update(String(drawn)).digest()
  }
  return {
    base62(length) {
      let id = ''
      // A byte modulo 62 favours a few characters slightly; ids here need to differ, not to be secret.
      while (id.length < length) for (const byte of draw()) id += base62Alphabet[byte % 62] ?? '0'
      return id.slice(0, length)
    },
    hex(length) {
      let id = ''
      while (id.length < length) id += draw().toString('hex')
      return id.slice(0, length)
    },
    now,
  }
}

export function uniqueIdentity(): Identity {
  return createIdentity(randomBytes(16), () => new Date())
}

export function deterministicIdentity(fingerprint: Uint8Array): Identity {
  return createIdentity(fingerprint, () => deterministicNow)
}

/**
 * The fingerprint by which two requests are the same. `stream_options` says how a stream is reported, not what is asked,
 * and a multipart boundary is random in every client: neither may change the ids.
 */
export function fingerprintRequest(request: {
  method: string
  target: string
  behaviours: string
  contentType: string
  body: Uint8Array
}): Buffer {
  const hash = createHash('sha256')
  hash.update(`${request.method} ${request.target}\n${request.behaviours}\n`)
  const boundary = /^multipart\/.*boundary="?([^";\s]+)/i.exec(request.contentType)?.[1]
  if (boundary === undefined) hash.update(withoutStreamOptions(request.body))
  else hash.update(Buffer.from(request.body).toString('latin1').replaceAll(boundary, ''))
  return hash.digest()
}

function withoutStreamOptions(body: Uint8Array): Uint8Array | string {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(body).toString('utf8'))
    if (typeof parsed !== 'object' || parsed === null) return body
    // The JSON is always written anew, so that a body with blanks in it is the same with and without the member.
    return JSON.stringify({ ...parsed, stream_options: undefined })
  } catch {
    return body
  }
}
