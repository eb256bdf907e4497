import type { SQLOutputValue } from 'node:sqlite'
import type { Duplex } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type pg from 'pg'
import { toKept, toKeptJson } from '../postgres/any-text.ts'
import type { MovedKind, MovedTable } from './moved-tables.ts'

export type SourceRow = readonly SQLOutputValue[]

/** The size of a chunk that is sent at once: about as much as the system takes without waiting. */
const CHUNK_CHARS = 64 * 1024

/** Copies rows of SQLite into a table of PostgreSQL. `onRows` is told how many have been sent. */
export function copyRows(
  client: pg.Client,
  { name, columns }: MovedTable,
  rows: Iterable<SourceRow>,
  onRows: (sent: number) => void,
): Promise<void> {
  const statement = `COPY ${name} (${columns.map((column) => column.name).join(', ')}) FROM STDIN`
  const chunks = chunksOf(
    columns.map(({ kind }) => kind),
    rows,
    onRows,
  )
  return new Promise((resolve, reject) => {
    client.query(new CopyIn(statement, chunks, (error) => (error === null ? resolve() : reject(error))))
  })
}

/** Rows in the text format of COPY: a line each, columns apart by tabs. */
function* chunksOf(
  kinds: readonly MovedKind[],
  rows: Iterable<SourceRow>,
  onRows: (sent: number) => void,
): Iterable<Buffer> {
  let text = ''
  let sent = 0
  for (const row of rows) {
    const values = kinds.map((kind, i) => {
      const value = row[i]
      return value === null || value === undefined ? '\\N' : WRITERS[kind](value)
    })
    text += `${values.join('\t')}\n`
    sent += 1
    if (text.length < CHUNK_CHARS) continue
    yield Buffer.from(text)
    onRows(sent)
    text = ''
  }
  if (text !== '') yield Buffer.from(text)
}

type Value = Exclude<SQLOutputValue, null>

const WRITERS: Readonly<Record<MovedKind, (value: Value) => string>> = {
  text: (value) => escaped(String(value)),
  upper: (value) => escaped(String(value).toUpperCase()),
  integer: String,
  // As in SQLite, any value but 1 is false.
  flag: (value) => (value === 1n ? 't' : 'f'),
  bytes: (value) => `\\\\x${Buffer.from(value as Uint8Array).toString('hex')}`,
  json: (value) => escaped(toKeptJson(JSON.parse(String(value)))),
}

const SPECIAL = /[\0\u0001\\\t\n\r]/
const ESCAPED = /[\\\t\n\r]/g
const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' }

/** Nearly all texts have none of the characters that COPY gives a meaning, or that the database does not keep. */
function escaped(text: string): string {
  return SPECIAL.test(text) ? toKept(text).replace(ESCAPED, (character) => ESCAPES[character] ?? '') : text
}

/** Methods of a connection of pg that its types lack. */
interface CopyConnection {
  readonly stream: Duplex
  sendCopyFromChunk(chunk: Uint8Array): void
  endCopyFrom(): void
  sendCopyFail(message: string): void
}

/**
 * `COPY … FROM STDIN` as pg's client runs a statement: it calls `submit`, and then the handlers of the database's messages.
 * Each chunk is made while the database is busy with those before it. If the iterator throws, nothing is copied.
 */
class CopyIn implements pg.Submittable {
  /** The client wraps this callback in its own. */
  callback: (error: Error | null) => void
  readonly #statement: string
  readonly #chunks: Iterable<Uint8Array>
  #cause: Error | null = null
  #ended = false

  constructor(statement: string, chunks: Iterable<Uint8Array>, callback: (error: Error | null) => void) {
    this.#statement = statement
    this.#chunks = chunks
    this.callback = callback
  }

  submit(connection: pg.Connection): void {
    connection.query(this.#statement)
  }

  handleCopyInResponse(connection: CopyConnection): void {
    void this.#send(connection)
  }

  async #send(connection: CopyConnection): Promise<void> {
    try {
      for (const chunk of this.#chunks) {
        if (this.#ended) return
        connection.sendCopyFromChunk(chunk)
        // A turn of the event loop, so that a written chunk leaves the process before the next is made.
        await (connection.stream.writableNeedDrain ? drained(connection.stream) : nextTurn())
      }
      if (!this.#ended) connection.endCopyFrom()
    } catch (error) {
      this.#cause = error instanceof Error ? error : new Error(String(error))
      connection.sendCopyFail('the source failed')
    }
  }

  handleCommandComplete(): void {}

  handleError(error: Error): void {
    this.#ended = true
    this.callback(this.#cause ?? error)
  }

  handleReadyForQuery(): void {
    this.#ended = true
    this.callback(null)
  }
}

/** Resolves when the stream is drained, or closed: the client hears of a close by itself. */
function drained(stream: Duplex): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      stream.off('drain', go)
      stream.off('close', go)
      resolve()
    }
    stream.once('drain', go)
    stream.once('close', go)
  })
}
