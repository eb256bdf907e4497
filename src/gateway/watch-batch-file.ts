import { firstValue, type RawHeaders } from '../http/raw-headers.ts'
import type { BatchFile, LedgerStore } from '../ledger/ledger-store.ts'
import { codingOf } from '../metering/content-coding.ts'
import { decodeCopy } from '../metering/decode-copy.ts'
import { BatchFileScanner, UPLOAD_REPLY_BYTES_MAX, uploadedFileId } from '../providers/batch-file.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import { SURFACES } from '../providers/surfaces.ts'
import { Beginning } from './beginning.ts'
import type { Onlooker } from './onlooker.ts'
import { saysTwice } from './read.ts'

/** Whether this is the upload of a file from which a batch can be made later. */
export function mayUploadBatch(endpoint: Endpoint | null): boolean {
  if (endpoint === null || endpoint.method !== 'POST') return false
  return SURFACES[endpoint.surface].batchUpload === endpoint.template
}

/**
 * Looks at the upload of a file: if its lines are requests, the models that they name are kept under the id that
 * upstream gives the file, so that a key with an allowlist can make a batch of it.
 */
export function watchBatchFile(
  headers: RawHeaders,
  owner: Pick<BatchFile, 'accountId' | 'keyId' | 'atMs'>,
  store: Pick<LedgerStore, 'keepBatchFile'>,
): Onlooker {
  const scanner = new BatchFileScanner(
    firstValue(headers, 'content-type'),
    firstValue(headers, 'content-encoding'),
  )
  const doubtful = saysTwice(headers, 'content-type') || saysTwice(headers, 'content-encoding')
  const reply = new Beginning(UPLOAD_REPLY_BYTES_MAX)
  return {
    sent: (chunk) => scanner.write(chunk),
    received: (chunk) => reply.append(chunk),
    beforeAnswer: true,
    async ended({ head, whole }) {
      const found = doubtful ? null : scanner.end()
      if (found === null || head === null || head.status !== 200 || !whole || reply.truncated) return
      const decoded = await decodeReply(reply.bytes(), head.headers)
      const fileId = decoded === null ? null : uploadedFileId(decoded)
      if (fileId !== null) await store.keepBatchFile({ ...owner, fileId, models: found.models })
    },
  }
}

async function decodeReply(bytes: Buffer, headers: RawHeaders): Promise<Buffer | null> {
  const coding = codingOf(firstValue(headers, 'content-encoding'))
  if (coding === 'identity') return bytes
  if (coding === 'unknown') return null
  const decoded: Buffer[] = []
  const decoder = decodeCopy(coding.coding, UPLOAD_REPLY_BYTES_MAX, (part) => decoded.push(part))
  await decoder.write(bytes)
  return (await decoder.end()) === 'whole' ? Buffer.concat(decoded) : null
}
