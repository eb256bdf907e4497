import type { Borrowed } from '../kernel/memory.ts'
import type { Bound } from '../kernel/money.ts'
import { codingOf } from '../metering/content-coding.ts'
import { JsonLines } from '../metering/json-lines.ts'
import { type Picked, WatchedNames } from '../metering/json-place.ts'
import { scanJson } from '../metering/json-walker.ts'
import {
  boundaryOf,
  looseName,
  MultipartScanner,
  type PartHead,
  type PartSink,
} from '../metering/multipart-scanner.ts'
import { isFileId, ModelNames, readModels } from './named-models.ts'
import { BATCH_LINE, isPickedObject } from './request-members.ts'
import type { EntryWatch } from './watch-records.ts'

const FILE_NAME = new WatchedNames(['file'])

/**
 * Watches the upload of a file of batch requests as it passes, and finds the models that the requests name and what they
 * may cost together. The scanner answers only what every reader of the file would find; for every other file it answers
 * null, and a batch of such a file is refused to keys with limits. The scanner never throws and keeps no chunk.
 */
export class BatchFileScanner {
  readonly #form: MultipartScanner<'purpose'> | null
  readonly #lines: JsonLines
  readonly #names = new ModelNames()
  readonly #entries: EntryWatch
  #isBounded = true
  #files = 0
  #failed = false

  constructor(contentType: string | undefined, contentEncoding: string | undefined, entries: EntryWatch) {
    const boundary = codingOf(contentEncoding) === 'identity' ? boundaryOf(contentType ?? '') : null
    this.#entries = entries
    this.#lines = new JsonLines(BATCH_LINE, (line) => this.#readLine(line), {
      onBytes: (bytes) => entries.write(bytes),
    })
    const sink: PartSink = {
      open: (head) => this.#openPart(head),
      write: (bytes) => {
        this.#lines.write(bytes)
        if (this.#lines.failed) this.#failed = true
      },
    }
    this.#form = boundary === null ? null : new MultipartScanner(boundary, ['purpose'], {}, sink)
  }

  write(chunk: Borrowed): void {
    if (this.#failed) return
    try {
      this.#form?.write(chunk)
    } catch {
      this.#failed = true
    }
  }

  /** To be called once the whole body has passed. The bound is null where a request cannot be read beyond doubt. */
  end(): { readonly models: readonly string[]; readonly bound: Bound | null } | null {
    if (this.#failed || this.#form === null) return null
    const form = this.#form.end()
    if (form.kind === 'unreadable' || form.duplicates.length > 0 || this.#files !== 1) return null
    const purpose = form.fields.get('purpose')
    if (purpose?.kind !== 'text' || purpose.value !== 'batch' || !this.#lines.end()) return null
    const { bound, ambiguity } = this.#entries
    return { models: this.#names.names, bound: this.#isBounded && ambiguity === null ? bound : null }
  }

  #openPart(head: PartHead): boolean {
    const name = looseName(head.name)
    const isFile = head.name === 'file'
    if (isFile) this.#files++
    else if (head.isFile || name === 'file' || FILE_NAME.isAmbiguous(name)) this.#failed = true
    if (isFile && !(head.isFile && head.verbatim)) this.#failed = true
    return isFile && !this.#failed
  }

  #readLine(line: Picked): boolean {
    const { body, url = '' } = isPickedObject(line) ? line : {}
    if (!isPickedObject(body)) return false
    if (typeof url !== 'string' || !this.#entries.endEntry(url)) this.#isBounded = false
    readModels(body, this.#names)
    return this.#names.unknown === null
  }
}

/** The reply to an upload is a few hundred bytes; a reply longer than this is not read. */
export const UPLOAD_REPLY_BYTES_MAX = 64 * 1024

/** The id of the file in the whole, decoded reply to its upload, or null if the reply is no file object. */
export function uploadedFileId(reply: Uint8Array): string | null {
  if (reply.length > UPLOAD_REPLY_BYTES_MAX) return null
  const scan = scanJson(reply, ['id', 'object'])
  if (scan.kind === 'unreadable' || scan.duplicates.length > 0) return null
  const [id, object] = [scan.members.get('id'), scan.members.get('object')]
  if (object?.kind !== 'string' || object.value !== 'file') return null
  return id?.kind === 'string' && isFileId(id.value) ? id.value : null
}
