/** A larger body is counted, not kept: only small bodies ask for a stream. */
const KEPT_BYTES_MAX = 64 * 1024
const HEAD_BYTES_MAX = 64 * 1024
const HEAD_END = Buffer.from('\r\n\r\n')
const NOTHING = Buffer.alloc(0)

/** Reads requests off a connection, one after the other, with as little work as possible. */
export class RequestReader {
  readonly #onRequest: (path: string, body: Buffer) => void
  #pending: Buffer = NOTHING
  #path = ''
  #bodyLeft = 0
  #inBody = false
  #kept: Buffer[] | null = null

  constructor(onRequest: (path: string, body: Buffer) => void) {
    this.#onRequest = onRequest
  }

  read(chunk: Buffer): void {
    let rest = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    this.#pending = NOTHING
    while (rest.length > 0) {
      if (!this.#inBody) {
        const end = rest.indexOf(HEAD_END)
        if (end < 0) {
          if (rest.length > HEAD_BYTES_MAX) throw new Error('a request head without an end')
          this.#pending = rest
          return
        }
        this.#readHead(rest.toString('latin1', 0, end))
        rest = rest.subarray(end + HEAD_END.length)
      }
      const body = rest.subarray(0, this.#bodyLeft)
      this.#kept?.push(body)
      this.#bodyLeft -= body.length
      rest = rest.subarray(body.length)
      if (this.#bodyLeft > 0) return
      this.#inBody = false
      const kept = this.#kept ?? []
      this.#onRequest(this.#path, kept.length === 1 ? (kept[0] ?? NOTHING) : Buffer.concat(kept))
    }
  }

  #readHead(head: string): void {
    const pathAt = head.indexOf(' ') + 1
    this.#path = head.slice(pathAt, head.indexOf(' ', pathAt))
    // No subject sends its requests in chunks; one that did would be seen at once.
    if (/\r\ntransfer-encoding:/i.test(head)) throw new Error('a request in chunks')
    this.#bodyLeft = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
    this.#inBody = true
    this.#kept = this.#bodyLeft <= KEPT_BYTES_MAX ? [] : null
  }
}
