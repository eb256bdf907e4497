import { type CodingPair, openPair } from '../../metering/content-coding.ts'

/** Takes bytes for the client. A promise is back-pressure: wait for it before more. */
export type TakeBytes = (bytes: Buffer) => Promise<void> | null

/** Changes bytes as they pass. Null: there is nothing to give on yet. */
export interface ByteEditor {
  write(chunk: Buffer): Buffer | null
  end(): Buffer | null
}

/**
 * Changes a compressed reply: decoded, changed, and compressed again in the same coding. Each chunk that arrives leaves as
 * far as it can be read, flushed, before the next one is looked at.
 *
 * Nothing here rejects. `broken` means that the client must not take what it got for the whole: the connection has to
 * be cut, and never ended.
 */
export class RecodedStream {
  readonly #coding: string
  readonly #editor: ByteEditor
  #pair: CodingPair | null = null
  #turn: Promise<unknown> = Promise.resolve()
  #isBroken = false

  /** One of the codings of content-coding.ts, as `Content-Encoding` names it, in lower case. */
  constructor(coding: string, editor: ByteEditor) {
    this.#coding = coding
    this.#editor = editor
  }

  /** Resolves when everything the chunk gives has been taken. Wait for it before the next chunk. */
  write(chunk: Buffer, take: TakeBytes): Promise<'open' | 'broken'> {
    return this.#inTurn(async () => {
      if (chunk.length === 0) return
      this.#pair ??= openPair(this.#coding, chunk[0] ?? 0, 'each_chunk')
      await this.#recode(this.#pair, this.#pair.decoder.feed(chunk), take)
    }).then((isWhole) => (isWhole ? 'open' : 'broken'))
  }

  /** Upstream's body is complete. If the compressed data in it is not, the stream is broken all the same. */
  async end(take: TakeBytes): Promise<'whole' | 'broken'> {
    const isWhole = await this.#inTurn(async () => {
      const pair = this.#pair
      if (pair === null) return
      await this.#recode(pair, pair.decoder.finish(), take)
      await this.#encode(pair, this.#editor.end(), take)
      for await (const bytes of pair.encoder.finish()) await take(bytes)
    })
    this.#release()
    return isWhole ? 'whole' : 'broken'
  }

  /** Upstream was cut: the held bytes of its last event leave as far as they may, and the coding stays open. */
  async breakOff(take: TakeBytes): Promise<void> {
    await this.#inTurn(async () => {
      if (this.#pair !== null) await this.#encode(this.#pair, this.#editor.end(), take)
    })
    this.#release()
  }

  /** Gives the memory back. A write that is under way ends as broken. */
  destroy(): void {
    this.#isBroken = true
    this.#release()
  }

  #release(): void {
    this.#pair?.decoder.destroy()
    this.#pair?.encoder.destroy()
  }

  async #recode(pair: CodingPair, decoded: AsyncIterable<Buffer>, take: TakeBytes): Promise<void> {
    for await (const bytes of decoded) await this.#encode(pair, this.#editor.write(bytes), take)
  }

  async #encode(pair: CodingPair, bytes: Buffer | null, take: TakeBytes): Promise<void> {
    if (bytes === null) return
    for await (const coded of pair.encoder.feed(bytes)) await take(coded)
  }

  /** Runs the work after all work that was asked for before. Answers whether all of it went well, now and until now. */
  #inTurn(work: () => Promise<void>): Promise<boolean> {
    const done = this.#turn.then(async () => {
      if (this.#isBroken) return false
      try {
        await work()
      } catch {
        this.#isBroken = true
      }
      return !this.#isBroken
    })
    this.#turn = done
    return done
  }
}
