import type { Call } from '../call.ts'
import type { JsonObject } from '../json.ts'
import { type Part, parseMultipart } from '../multipart.ts'
import { Refusal } from '../refusal.ts'

export interface FormBody {
  /** The fields as text, by name; a field that is given twice has its last value. */
  readonly fields: JsonObject
  readonly files: readonly Part[]
}

export function isForm(call: Call): boolean {
  return call.contentType.startsWith('multipart/form-data')
}

export function parseForm(call: Call): FormBody {
  if (!isForm(call)) throw new Refusal(400, 'Invalid content type: expected multipart/form-data.')
  const parts = parseMultipart(call.body, call.contentType)
  const isFile = (part: Part): boolean => part.filename !== undefined
  return {
    fields: Object.fromEntries(
      parts.filter((part) => !isFile(part)).map((part) => [part.name, part.content.toString('utf8')]),
    ),
    files: parts.filter(isFile),
  }
}
