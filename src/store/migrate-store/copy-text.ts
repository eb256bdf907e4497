import type { SQLOutputValue } from 'node:sqlite'
import { toKept, toKeptJson } from '../postgres/any-text.ts'
import type { MovedKind } from './moved-tables.ts'

/** Writes rows of SQLite in the text format of PostgreSQL's COPY: a line each, columns apart by tabs. */
export type LineOf = (row: readonly SQLOutputValue[]) => string

export function lineWriter(kinds: readonly MovedKind[]): LineOf {
  const write = kinds.map((kind) => WRITERS[kind])
  return (row) => {
    let line = ''
    for (const [i, writeValue] of write.entries()) {
      if (i > 0) line += '\t'
      const value = row[i]
      line += value === null || value === undefined ? '\\N' : writeValue(value)
    }
    return `${line}\n`
  }
}

type Value = Exclude<SQLOutputValue, null>

const WRITERS: Readonly<Record<MovedKind, (value: Value) => string>> = {
  text: (value) => escaped(String(value)),
  upper: (value) => escaped(String(value).toUpperCase()),
  integer: String,
  // As in SQLite: what is not 1 is false.
  flag: (value) => (value === 1n ? 't' : 'f'),
  bytes: (value) => `\\\\x${Buffer.from(value as Uint8Array).toString('hex')}`,
  json: (value) => escaped(toKeptJson(JSON.parse(String(value)))),
}

const SPECIAL = /[\0\u0001\\\t\n\r]/
const ESCAPED = /[\\\t\n\r]/g

/** Nearly all texts have none of the characters that mean something here, or that the database does not keep. */
function escaped(text: string): string {
  return SPECIAL.test(text) ? toKept(text).replace(ESCAPED, (character) => ESCAPES[character] ?? '') : text
}

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' }
