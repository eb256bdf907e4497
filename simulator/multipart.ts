import type { Call } from './call.ts'
import { Refusal } from './refusal.ts'

export interface Form {
  /** The fields as text, by name. */
  readonly fields: Readonly<Record<string, string>>
  /** The part named `file`. */
  readonly file: { readonly filename: string; readonly content: Buffer } | undefined
}

/** Reads a multipart/form-data body (RFC 7578). */
export function parseForm({ body, headers }: Call): Form {
  const form = /^multipart\/form-data\s*;.*boundary=(?:"([^"]{1,70})"|([^\s;]{1,70}))/i
  const [, quoted, plain] = form.exec(headers['content-type'] ?? '') ?? []
  const boundary = quoted ?? plain
  if (boundary === undefined) throw malformed('expected multipart/form-data with a boundary')
  const delimiter = Buffer.from(`\r\n--${boundary}`)
  const fields: Record<string, string> = {}
  let file: Form['file']
  // The first delimiter has no line break before it.
  let at = body.indexOf(delimiter.subarray(2)) - 2
  for (;;) {
    const start = at + delimiter.length
    if (body.toString('latin1', start, start + 2) === '--') return { fields, file }
    const headEnd = body.indexOf('\r\n\r\n', start)
    const next = body.indexOf(delimiter, start)
    if (at < -2 || headEnd === -1 || next === -1 || headEnd > next) throw malformed('a part does not end')
    const head = body.toString('utf8', start, headEnd)
    const content = body.subarray(headEnd + 4, next)
    const name = /[;\s]name="([^"]*)"/i.exec(head)?.[1] ?? ''
    const filename = /[;\s]filename="([^"]*)"/i.exec(head)?.[1]
    if (filename === undefined) fields[name] = content.toString('utf8')
    else if (name === 'file') file = { filename, content: Buffer.from(content) }
    at = next
  }
}

function malformed(reason: string): Refusal {
  return new Refusal(400, `Could not parse multipart form: ${reason}`)
}
