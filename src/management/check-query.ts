import { z } from 'zod'
import { type Checked, checkInput, refused } from './check-input.ts'

const NONE = z.strictObject({})

/**
 * Checks the part behind `?`. A parameter that is repeated or cannot be decoded is refused, because whichever
 * reading we chose, the sender may have meant the other.
 */
export function checkQuery(schema: z.ZodType | null, query: string): Checked<unknown> {
  const values = new Map<string, string>()
  for (const pair of query.slice(1).split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const rawName = equals === -1 ? pair : pair.slice(0, equals)
    const name = decode(rawName)
    if (name === null) return malformed(rawName)
    if (values.has(name)) return refused(`${name} is there more than once.`, name)
    const value = decode(equals === -1 ? '' : pair.slice(equals + 1))
    if (value === null) return malformed(name)
    values.set(name, value)
  }
  return checkInput(schema ?? NONE, Object.fromEntries(values), 'query')
}

function malformed(name: string): Checked<never> {
  return refused(`${name} is not percent-encoded UTF-8.`, name)
}

/** As forms and URLSearchParams write it: a plus is a blank. */
function decode(text: string): string | null {
  // Node hands bytes beyond ASCII on as if they were Latin-1; what they were meant to be is not known.
  if (/[^\x21-\x7e]/.test(text)) return null
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return null
  }
}
