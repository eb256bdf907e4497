import { firstValue, type RawHeaders } from '../../http/raw-headers.ts'
import { type CodingPair, codingOf, openPair } from '../../metering/content-coding.ts'
import { type CutTally, UsageCutter } from './cut-usage-out.ts'

/** Takes out of a reply what our asking for usage has put in. */
export interface UsageRemover {
  /** A promise means: the next chunk waits for it. `broken` ends the reply as a cut one. */
  write(chunk: Buffer, take: TakeBytes): Promise<'open' | 'broken'> | null
  end(take: TakeBytes): Promise<'whole' | 'broken'>
  /** Upstream was cut; what may still leave, leaves. */
  breakOff(take: TakeBytes): Promise<void>
  destroy(): void
}

/** For a stream of events that usage was asked into; null for every other reply, which passes as it is. */
export function createUsageRemover(status: number, headers: RawHeaders): UsageRemover | null {
  const type = firstValue(headers, 'content-type') ?? ''
  if (status < 200 || status > 299 || !/^\s*text\/event-stream\b/i.test(type)) return null
  const coding = codingOf(firstValue(headers, 'content-encoding'))
  if (coding === 'unknown') return null
  return coding === 'identity' ? plainRemover() : new RecodedStream(coding.coding)
}

function plainRemover(): UsageRemover {
  const cutter = new UsageCutter()
  return {
    write(chunk, take) {
      const bytes = cutter.write(chunk)
      const wait = bytes === null ? null : take(bytes)
      return wait === null ? null : wait.then(() => 'open' as const)
    },
    async end(take) {
      const rest = cutter.end()
      if (rest !== null) await take(rest)
      return 'whole'
    },
    async breakOff(take) {
      const rest = cutter.end()
      if (rest !== null) await take(rest)
    },
    destroy() {},
  }
}

/** Takes bytes for the client. A promise means: wait for it before more. */
type TakeBytes = (bytes: Buffer) => Promise<void> | null

interface RecodeOptions {
  readonly eventBytesMax?: number
  /** Sees the decoded bytes as upstream sent them, so that usage can be read without decoding twice. */
  readonly onDecoded?: (bytes: Buffer) => void
}

/**
 * Cuts usage out of a compressed chat stream: decoded, cut, and compressed again in the same coding. Each chunk that
 * arrives leaves as far as it can be read, flushed, before the next one is looked at.
 *
 * Nothing here rejects. `broken` means that the client must not take what it got for the whole: the connection has to
 * be cut, and never ended.
 */
export class RecodedStream {
  readonly #coding: string
  readonly #cutter: UsageCutter
  readonly #onDecoded: ((bytes: Buffer) => void) | undefined
  #pair: CodingPair | null = null
  #turn: Promise<unknown> = Promise.resolve()
  #failure: Error | null = null

  /** One of the codings of content-coding.ts, as `Content-Encoding` names it, in lower case. */
  constructor(coding: string, options: RecodeOptions = {}) {
    this.#coding = coding
    this.#cutter = new UsageCutter(options.eventBytesMax)
    this.#onDecoded = options.onDecoded
  }

  get tally(): CutTally {
    return this.#cutter.tally
  }

  /** Why the stream is broken, for the log. */
  get failure(): Error | null {
    return this.#failure
  }

  /** Resolves when everything the chunk gives has been taken. Wait for it before the next chunk. */
  write(chunk: Buffer, take: TakeBytes): Promise<'open' | 'broken'> {
    return this.#inTurn(async () => {
      if (chunk.length === 0) return
      this.#pair ??= openPair(this.#coding, chunk[0] ?? 0, 'each_chunk')
      await this.#recode(this.#pair, this.#pair.decoder.feed(chunk), take)
    }).then((isWhole) => (isWhole ? 'open' : 'broken'))
  }

  /** Upstream's body is complete. If what it holds is not, the stream is broken all the same. */
  async end(take: TakeBytes): Promise<'whole' | 'broken'> {
    const isWhole = await this.#inTurn(async () => {
      const pair = this.#pair
      if (pair === null) return
      await this.#recode(pair, pair.decoder.finish(), take)
      await this.#encode(pair, this.#cutter.end(), take)
      for await (const bytes of pair.encoder.finish()) await take(bytes)
    })
    this.#release()
    return isWhole ? 'whole' : 'broken'
  }

  /** Upstream was cut: what is held of its last event leaves as far as it may, and the coding stays open. */
  async breakOff(take: TakeBytes): Promise<void> {
    await this.#inTurn(async () => {
      if (this.#pair !== null) await this.#encode(this.#pair, this.#cutter.end(), take)
    })
    this.#release()
  }

  /** Gives the memory back. What is under way ends as broken. */
  destroy(): void {
    this.#failure ??= new Error('the stream was destroyed')
    this.#release()
  }

  #release(): void {
    this.#pair?.decoder.destroy()
    this.#pair?.encoder.destroy()
  }

  async #recode(pair: CodingPair, decoded: AsyncIterable<Buffer>, take: TakeBytes): Promise<void> {
    for await (const bytes of decoded) {
      this.#onDecoded?.(bytes)
      await this.#encode(pair, this.#cutter.write(bytes), take)
    }
  }

  async #encode(pair: CodingPair, bytes: Buffer | null, take: TakeBytes): Promise<void> {
    if (bytes === null) return
    for await (const coded of pair.encoder.feed(bytes)) await take(coded)
  }

  /** After whatever was asked for before. Answers whether all went well, now and until now. */
  #inTurn(work: () => Promise<void>): Promise<boolean> {
    const done = this.#turn.then(async () => {
      if (this.#failure !== null) return false
      try {
        await work()
      } catch (error) {
        this.#failure ??= error instanceof Error ? error : new Error(String(error))
      }
      return this.#failure === null
    })
    this.#turn = done
    return done
  }
}
