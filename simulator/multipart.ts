import { Refusal } from './refusal.ts'

export interface Part {
  readonly name: string
  readonly filename: string | undefined
  readonly contentType: string
  readonly content: Buffer
}

const partsMax = 64
const partHeadBytesMax = 8_192

/** Splits a multipart/form-data body (RFC 7578) into its parts. */
export function parseMultipart(body: Buffer, contentType: string): Part[] {
  const boundary = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;]{1,70}))/i.exec(contentType)
  const text = boundary?.[1] ?? boundary?.[2]
  if (text === undefined) throw malformed('the boundary is missing')
  const delimiter = Buffer.from(`--${text}`)
  const parts: Part[] = []
  let at = body.indexOf(delimiter)
  while (at !== -1 && parts.length < partsMax) {
    const start = at + delimiter.length
    if (body.toString('latin1', start, start + 2) === '--') return parts
    const headEnd = body.indexOf('\r\n\r\n', start)
    const next = body.indexOf(Buffer.concat([Buffer.from('\r\n'), delimiter]), start)
    if (headEnd === -1 || next === -1 || headEnd > next || headEnd - start > partHeadBytesMax) break
    parts.push(parsePart(body.toString('utf8', start, headEnd), body.subarray(headEnd + 4, next)))
    at = next + 2
  }
  throw malformed('a part does not end')
}

function parsePart(head: string, content: Buffer): Part {
  const disposition = /^content-disposition:(.*)$/im.exec(head)?.[1] ?? ''
  const name = /[;\s]name="([^"]*)"/i.exec(disposition)?.[1]
  if (name === undefined) throw malformed('a part has no name')
  return {
    name,
    filename: /[;\s]filename="([^"]*)"/i.exec(disposition)?.[1],
    contentType: /^content-type:\s*(\S[^\r\n]*)$/im.exec(head)?.[1]?.trim() ?? 'application/octet-stream',
    content,
  }
}

function malformed(reason: string): Refusal {
  return new Refusal(400, `Could not parse multipart form: ${reason}`)
}
