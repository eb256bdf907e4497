import { z } from 'zod'

export interface TextRules {
  /** Where it is compared with a text that is bounded by its length in UTF-16. */
  readonly unitsMax?: number
  /** Whether it may be nothing but blanks; it may unless told otherwise. */
  readonly blank?: boolean
}

const CONTROL = '\\u0000-\\u001f\\u007f-\\u009f'
const ANY = `[^${CONTROL}]`
const NO_BLANK = `[^${CONTROL}\\s]`

/**
 * A text of one line. Characters are Unicode code points, as JSON Schema counts them. An unpaired surrogate cannot
 * be stored as UTF-8 and would come back as something else.
 */
export function textField(subject: string, charsMax: number, more: TextRules = {}) {
  const { unitsMax = Number.POSITIVE_INFINITY, blank = true } = more
  return z
    .string(`${subject} must be a text of 1 to ${charsMax} characters.`)
    .refine((text) => text !== '', `${subject} must not be empty.`)
    .refine((text) => [...text].length <= charsMax, `${subject} must have at most ${charsMax} characters.`)
    .refine((text) => !/\p{Cc}/u.test(text), `${subject} must not have control characters.`)
    .refine((text) => text.isWellFormed(), `${subject} must be well-formed Unicode.`)
    .refine((text) => text.length <= unitsMax, `${subject} must have at most ${unitsMax} UTF-16 units.`)
    .refine((text) => blank || /\S/.test(text), `${subject} must not be blank.`)
    .meta({ minLength: 1, maxLength: charsMax, pattern: blank ? `^${ANY}*$` : `^${ANY}*${NO_BLANK}${ANY}*$` })
}
