import { promisify } from 'node:util'
import { zstdCompress } from 'node:zlib'
import { firstValue, type RawHeaders } from '../http/raw-headers.ts'
import { limits } from '../kernel/limits.ts'
import { type Redact, redactBody } from '../kernel/secret.ts'
import type { LoggedBody, RequestLogStore } from '../ledger/request-log.ts'
import { codingOf } from '../metering/content-coding.ts'
import { decodeCopy } from '../metering/decode-copy.ts'
import { Beginning } from './beginning.ts'
import type { Onlooker } from './onlooker.ts'

const compress = promisify(zstdCompress)

export interface BodyLogParts {
  readonly requestId: string
  readonly headers: RawHeaders
  readonly atMs: number
  readonly redact: Redact
  readonly store: Pick<RequestLogStore, 'keepBodies' | 'trimBodies'>
  /** Of all that are kept. */
  readonly bodiesBytesMax: number
}

/** Keeps what was said in a call, for keys that have logging switched on: readable, without secrets, and bounded. */
export function logBodies({
  requestId,
  headers,
  atMs,
  redact,
  store,
  bodiesBytesMax,
}: BodyLogParts): Onlooker {
  const request = new Beginning(limits.loggedBodyBytesMax)
  const reply = new Beginning(limits.loggedBodyBytesMax)

  async function logged(
    body: Beginning,
    ownHeaders: RawHeaders,
    lengthBytes: number,
  ): Promise<LoggedBody | null> {
    const coding = codingOf(firstValue(ownHeaders, 'content-encoding'))
    // What cannot be read cannot be rid of secrets.
    if (lengthBytes === 0 || coding === 'unknown') return null
    const { bytes, whole } = await readable(body.bytes(), coding)
    const truncated = lengthBytes > body.keptBytes || !whole
    return {
      contentType: firstValue(ownHeaders, 'content-type') ?? null,
      compressed: await compress(withoutSecrets(truncated ? withoutEdge(bytes) : bytes, redact)),
      lengthBytes,
      truncated,
    }
  }

  return {
    sent: (chunk) => request.append(chunk),
    received: (chunk) => reply.append(chunk),
    beforeAnswer: false,
    async ended({ head, sentBytes }) {
      const [sent, received] = await Promise.all([
        logged(request, headers, sentBytes),
        head === null ? null : logged(reply, head.headers, reply.lengthBytes),
      ])
      if (sent !== null || received !== null) {
        await store.keepBodies({ requestId, request: sent, response: received, atMs })
        // One step: what is left over, many small bodies for a large one, the next call or the hour takes away.
        await store.trimBodies(bodiesBytesMax, limits.bodiesDeletedAtOnce)
      }
    },
  }
}

/** As it was before it was encoded for the way, as far as that can be told from what was kept. */
async function readable(
  bytes: Buffer,
  coding: ReturnType<typeof codingOf>,
): Promise<{ readonly bytes: Buffer; readonly whole: boolean }> {
  if (typeof coding === 'string') return { bytes, whole: true }
  const decoded: Buffer[] = []
  const decoder = decodeCopy(coding.coding, limits.loggedBodyBytesMax, (part) => decoded.push(part))
  await decoder.write(bytes)
  const whole = (await decoder.end()) === 'whole'
  return { bytes: Buffer.concat(decoded), whole }
}

/** A secret that the limit cut in two would not be found. */
const EDGE_BYTES = 512

function withoutEdge(bytes: Buffer): Buffer {
  return bytes.subarray(0, Math.max(0, bytes.length - EDGE_BYTES))
}

/** A secret is ASCII, so it is found and cut in Latin-1, whatever the bytes around it are. */
function withoutSecrets(bytes: Buffer, redact: Redact): Buffer {
  const text = bytes.toString('latin1')
  const clean = redactBody(text, redact)
  return clean === text ? bytes : Buffer.from(clean, 'latin1')
}
