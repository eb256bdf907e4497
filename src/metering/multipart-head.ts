import { isUtf8 } from 'node:buffer'

/** What the head of a part says. `plain` means that every parser takes the part for a text field of that name. */
export interface PartHead {
  readonly name: string
  readonly plain: boolean
  /** Text that is not ASCII would be read in another charset than UTF-8. */
  readonly asciiOnly: boolean
  /** A file name is given. */
  readonly isFile: boolean
  /** Nothing says that the bytes stand for others, or for text in another charset than UTF-8. */
  readonly verbatim: boolean
}

const HEADER_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)$/
/** The form every client in use writes: the name first, quoted, or bare if it is a word. */
const DISPOSITION = /^form-data[ \t]*;[ \t]*name=(?:"([^"\\]*)"|([0-9A-Za-z_.-]+))(?![^ \t;])/i
/** What may stand behind the name: `filename=` and `filename*=`, once each, are no second name. */
const FILENAME = /;[ \t]*filename=/i
const FILENAME_EXTENDED = /;[ \t]*filename\*=/i
const ANOTHER_NAME = /name[ \t*0-9]*=/i
const TEXT_TYPE = /^text\/plain(?:[ \t]*;[ \t]*charset=("?)(utf-8|us-ascii|iso-8859-1)\1)?$/i
const PLAIN_ENCODING = /^(?:7bit|8bit|binary)$/i
export const FOREIGN_CHARSET = /charset(?![ \t]*=[ \t]*"?(?:utf-?8|us-ascii)"?[ \t]*(?:;|$))/i

/**
 * Reads the head of a part (without its empty line), or answers null where parsers could differ: folded lines, bare
 * CR or LF, no or two `Content-Disposition`, anything but `form-data`, a name that is absent, escaped by backslash,
 * given as `name*=` or given again, be it inside a quoted filename, where parsers that split at `;` find it.
 */
export function readPartHead(bytes: Buffer): PartHead | null {
  const headers = new Map<string, string>()
  for (const line of bytes.toString('latin1').split('\r\n')) {
    const [, field, value] = HEADER_LINE.exec(line) ?? []
    if (field === undefined || value === undefined) return null
    const key = field.toLowerCase()
    if (headers.has(key) && key.startsWith('content-')) return null
    headers.set(key, withoutBlanks(value))
  }
  const disposition = headers.get('content-disposition') ?? ''
  const match = DISPOSITION.exec(disposition)
  if (match === null) return null
  const rest = disposition.slice(match[0].length)
  if (ANOTHER_NAME.test(rest.replace(FILENAME, ';').replace(FILENAME_EXTENDED, ';'))) return null

  const raw = Buffer.from(match[1] ?? match[2] ?? '', 'latin1')
  if (!isUtf8(raw)) return null
  const contentType = headers.get('content-type') ?? 'text/plain'
  const type = TEXT_TYPE.exec(contentType)
  const isPlainEncoding = PLAIN_ENCODING.test(headers.get('content-transfer-encoding') ?? 'binary')
  return {
    name: raw.toString('utf8'),
    plain: rest === '' && type !== null && isPlainEncoding,
    asciiOnly: (type?.[2] ?? 'utf-8').toLowerCase() !== 'utf-8',
    isFile: FILENAME.test(rest) || FILENAME_EXTENDED.test(rest),
    verbatim: isPlainEncoding && !headers.has('content-encoding') && !FOREIGN_CHARSET.test(contentType),
  }
}

/** `trim` would also take U+00A0, one byte here, which other parsers keep; a pattern for the end would be quadratic. */
function withoutBlanks(value: string): string {
  let [start, end] = [0, value.length]
  while (start < end && ' \t'.includes(value.charAt(start))) start++
  while (start < end && ' \t'.includes(value.charAt(end - 1))) end--
  return value.slice(start, end)
}

/** The name as parsers may see it that undo percent escapes, which browsers write, trim, and take `a[]` for a list `a`. */
export function looseName(name: string): string {
  return name
    .replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replace(/\[.*/s, '')
    .trim()
}
