import { promisify } from 'node:util'
import { zstdCompress } from 'node:zlib'
import { firstValue, type RawHeaders } from '../http/raw-headers.ts'
import { limits } from '../kernel/limits.ts'
import { type Redact, redactBody } from '../kernel/secret.ts'
import type { LoggedBody } from '../ledger/request-log.ts'
import { BODIES_DELETED_AT_ONCE } from '../ledger/retention.ts'
import {
  BatchFileScanner,
  EntrySum,
  UPLOAD_REPLY_BYTES_MAX,
  uploadedFileId,
} from '../providers/batch-requests.ts'
import { bodyHeadOf } from '../providers/read-request.ts'
import { uploadsBatches } from '../providers/surfaces.ts'
import { BodyPrefix } from './body-prefix.ts'
import type { CarriedCall } from './call.ts'
import type { Gateway } from './gateway.ts'
import type { ReplyHead } from './reply-writer.ts'

/** What a tap reads of the head of a reply. */
export type LoggedHead = Pick<ReplyHead, 'status' | 'headers'>

/** Observes the bytes of a call in both directions, and its end. Cannot change, delay or fail them. */
interface BodyTap {
  readonly sent: (chunk: Buffer) => void
  readonly received: (chunk: Buffer) => void
  /** Whether a JSON reply is buffered until this tap is done, because the client's next request may depend on it. */
  readonly beforeAnswer: boolean
  ended(head: LoggedHead | null, whole: boolean): Promise<void>
}

export type BodyTaps = ReturnType<typeof createBodyTaps>

export function createBodyTaps(call: CarriedCall, gateway: Gateway) {
  const all = tapsOf(call, gateway)

  async function notify(tap: BodyTap, head: LoggedHead | null, whole: boolean): Promise<void> {
    try {
      await tap.ended(head, whole)
    } catch (error) {
      const about = { request: call.hold.ask.requestId, cause: (error as Error).message }
      gateway.log.error(about, 'the logged bodies or batch lines of a call could not be stored')
    }
  }

  return {
    get bufferJson(): boolean {
      return all.some((tap) => tap.beforeAnswer)
    },
    sent(chunk: Buffer): void {
      for (const tap of all) tap.sent(chunk)
    },
    received(chunk: Buffer): void {
      for (const tap of all) tap.received(chunk)
    },
    /** Runs the taps on which the client's next request may depend. Called after settlement, before the answer. */
    async callSettled(head: LoggedHead | null, whole: boolean): Promise<void> {
      for (const tap of all) if (tap.beforeAnswer) await notify(tap, head, whole)
    },
    /** Runs the other taps in the background. Call it when the call is over, however it ended. */
    callOver(head: LoggedHead | null, whole: boolean): void {
      for (const tap of all) {
        if (!tap.beforeAnswer) gateway.background.add(() => notify(tap, head, whole))
      }
    },
  }
}

function tapsOf(call: CarriedCall, gateway: Gateway): readonly BodyTap[] {
  const { hold } = call
  const { endpoint } = hold.ask
  const taps = uploadsBatches(endpoint) ? [watchBatchFile(call, gateway)] : []
  if (hold.terms.logRequests) taps.push(logBodies(call, gateway))
  return taps
}

const NOT_A_BATCH = { models: null, bound: null } as const

/** Records an uploaded file under upstream's id. If its lines are requests, their models and bound are stored too. */
function watchBatchFile({ headers, hold, share }: CarriedCall, { store, reading, clock }: Gateway): BodyTap {
  const { accountId, keyId } = hold.terms
  const atMs = clock.nowMs()
  const scanner = new BatchFileScanner(
    bodyHeadOf(headers),
    new EntrySum(hold.ask.surface, reading.boundEntry),
  )
  const reply = new BodyPrefix(UPLOAD_REPLY_BYTES_MAX, { bytesLeft: UPLOAD_REPLY_BYTES_MAX })
  return {
    sent: (chunk) => share.pace.read(() => scanner.write(chunk)),
    received: (chunk) => reply.append(chunk),
    beforeAnswer: true,
    async ended(head, whole) {
      const found = scanner.end() ?? NOT_A_BATCH
      if (head === null || head.status !== 200 || !whole) return
      const decoded = await reply.decoded(head.headers)
      const fileId = decoded?.whole === true ? uploadedFileId(decoded.bytes) : null
      if (fileId !== null) await store.storeBatchFile({ accountId, keyId, atMs, fileId, ...found })
    },
  }
}

const compress = promisify(zstdCompress)

function logBodies(
  { headers, hold }: CarriedCall,
  { store, bodiesBytesMax, clock, background }: Gateway,
): BodyTap {
  const { requestId } = hold.ask
  const atMs = clock.nowMs()
  const request = new BodyPrefix(limits.loggedBodyBytesMax, background)
  const reply = new BodyPrefix(limits.loggedBodyBytesMax, background)
  const logged = async (body: BodyPrefix, headers: RawHeaders): Promise<LoggedBody | null> => {
    // Secrets cannot be removed from a body in an unknown coding, so it is not logged.
    const decoded = body.lengthBytes === 0 ? null : await body.decoded(headers)
    if (decoded === null) return null
    const { bytes, whole } = decoded
    const stored = whole ? bytes : bytes.subarray(0, -TRUNCATED_END_BYTES)
    return {
      contentType: firstValue(headers, 'content-type') ?? null,
      compressed: await compress(withoutSecrets(stored, hold.redact)),
      lengthBytes: body.lengthBytes,
      truncated: !whole,
    }
  }
  return {
    sent: (chunk) => request.append(chunk),
    received: (chunk) => reply.append(chunk),
    beforeAnswer: false,
    async ended(head) {
      const [sent, received] = await Promise.all([
        logged(request, headers),
        head === null ? null : logged(reply, head.headers),
      ]).finally(() => {
        request.release()
        reply.release()
      })
      if (sent === null && received === null) return
      await store.storeBodies({ requestId, request: sent, response: received, atMs })
      // Delete only some: the next call or the hourly retention deletes the rest.
      await store.trimBodies(bodiesBytesMax, BODIES_DELETED_AT_ONCE)
    },
  }
}

/** Bytes to drop at the end of a truncated body. They may contain half of a secret, which redaction would miss. */
const TRUNCATED_END_BYTES = 512

/** Reads the body as Latin-1, which preserves every byte. Secrets are ASCII. */
function withoutSecrets(bytes: Buffer, redact: Redact): Buffer {
  const text = bytes.toString('latin1')
  const clean = redactBody(text, redact)
  return clean === text ? bytes : Buffer.from(clean, 'latin1')
}
