/**
 * PostgreSQL stores every character but U+0000, and clients may send U+0000 too: in a model's name, a path, the name of a
 * key. U+0000 is stored as two characters, and U+0001, the escape, as two others, so that texts stay different and in the
 * same order. The database's client writes all texts this way and reads them back; JSON has to be made here, because
 * JSON spells the character out and the client cannot see it.
 */

const UNKEPT = /[\0\u0001]/g
const KEPT = /\u0001([\u0001\u0002])/g

/** A text as it is stored. A lone surrogate is no character, and becomes the replacement character, as in UTF-8. */
export function toKept(text: string): string {
  return text.replace(UNKEPT, (character) => (character === '\0' ? '\u0001\u0001' : '\u0001\u0002'))
}

export function fromKept(text: string): string {
  return text.includes('\u0001')
    ? text.replace(KEPT, (_, second) => (second === '\u0001' ? '\0' : '\u0001'))
    : text
}

/** JSON for a parameter of type jsonb. */
export function toKeptJson(value: unknown): string {
  return JSON.stringify(value, (_, part) => (typeof part === 'string' ? toKept(part.toWellFormed()) : part))
}

/** JSON that came from a column of type jsonb. */
export function fromKeptJson(json: string): unknown {
  return JSON.parse(json, (_, part) => (typeof part === 'string' ? fromKept(part) : part))
}
