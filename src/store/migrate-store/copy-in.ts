import type { Duplex } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type pg from 'pg'

/** What a connection of pg can do and its types do not say. */
interface CopyConnection {
  readonly stream: Duplex
  sendCopyFromChunk(chunk: Uint8Array): void
  endCopyFrom(): void
  sendCopyFail(message: string): void
}

/**
 * Runs `COPY … FROM STDIN` with what the iterator gives, each part of which is made while the database is busy with
 * those before it. If the iterator throws, nothing is copied.
 */
export function copyIn(client: pg.Client, statement: string, chunks: Iterable<Uint8Array>): Promise<void> {
  return new Promise((resolve, reject) => {
    client.query(new CopyIn(statement, chunks, (error) => (error === null ? resolve() : reject(error))))
  })
}

/** A statement as pg's client runs it: it calls `submit`, and then what the database answers with. */
class CopyIn implements pg.Submittable {
  /** The client puts its own around it, for the deadline. */
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
        // A turn of the event loop, so that what was written leaves the process before more is made.
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

/** Or gone: the client hears of that by itself. */
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
