import { z } from 'zod'

/**
 * A text of one line. Characters are Unicode code points, as JSON Schema counts them. An unpaired surrogate cannot
 * be stored as UTF-8 and would come back as something else.
 */
export function textField(subject: string, charsMax: number) {
  return z
    .string(`${subject} must be a text of 1 to ${charsMax} characters.`)
    .refine((text) => text !== '', `${subject} must not be empty.`)
    .refine((text) => [...text].length <= charsMax, `${subject} must have at most ${charsMax} characters.`)
    .refine((text) => !/\p{Cc}/u.test(text), `${subject} must not have control characters.`)
    .refine((text) => text.isWellFormed(), `${subject} must be well-formed Unicode.`)
    .meta({ minLength: 1, maxLength: charsMax, pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f]*$' })
}
