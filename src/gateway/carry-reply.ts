import { firstValue } from '../http/raw-headers.ts'
import type { Nanos } from '../kernel/money.ts'
import { kept } from '../kernel/read-buffer.ts'
import { SilentMeter } from '../metering/guarded-meter.ts'
import type { Metered, Stage } from '../metering/meter.ts'
import type { UsageReader } from '../providers/endpoint.ts'
import { isJsonType } from '../providers/usage/create-meter.ts'
import type { Answer, FiguresCome, ReplyHead } from './answer.ts'
import type { Figures } from './figures.ts'
import type { Call, ReplyReceiver } from './forward.ts'
import { type Observer, observe } from './observe.ts'
import { createUsageRemover, type UsageRemover, withoutOutdated } from './usage-remover.ts'

export interface CarryParts {
  readonly answer: Answer
  /** Who reads the usage; null where the reply costs nothing. */
  readonly reader: UsageReader | null
  /** Before this call. */
  readonly balanceNanos: Nanos | null
  /** A JSON reply is kept back though its figures are known, until somebody is done with it. */
  readonly holdJson: boolean
  onFirstByte(): void
  /** Sees each chunk as upstream sent it. */
  look(chunk: Buffer): void
}

/** A reply on its way from upstream to the client: observed, rid of what we asked into it, and answered with. */
export class CarriedReply implements ReplyReceiver {
  readonly #parts: CarryParts
  #replyHead: ReplyHead | null = null
  #observer: Observer | null = null
  #remover: UsageRemover | null = null
  #isHeld = false
  #isStreamed = false
  #drained: (() => void) | null = null
  #call: Call | null = null
  #usageAdded = false
  #begun = false
  #lastWait: Promise<unknown> | null = null

  constructor(parts: CarryParts) {
    this.#parts = parts
  }

  /** The call that this is the reply of; `usageAdded`: usage was asked for in the client's place. */
  attach(call: Call, usageAdded: boolean): void {
    this.#call = call
    this.#usageAdded = usageAdded
  }

  /** Upstream's head, if it has come. */
  get replyHead(): ReplyHead | null {
    return this.#replyHead
  }

  get isStreamed(): boolean {
    return this.#isStreamed
  }

  /** Worth reading to its end though the client has left: what says how much it cost is on its way. */
  get isNearlyDone(): boolean {
    return this.#isHeld || this.#stage !== 'content'
  }

  get #stage(): Stage {
    return this.#observer?.stage ?? 'content'
  }

  interim(status: number, headers: string[]): void {
    this.#parts.answer.interim(status, headers)
  }

  head(status: number, reason: string, headers: string[]): void {
    const { answer, reader } = this.#parts
    this.#replyHead = { status, reason, headers }
    const costs = reader !== null && status >= 200 && status < 300
    if (costs) this.#observer = observe(reader, status, headers)
    if (this.#usageAdded) this.#remover = createUsageRemover(status, headers)
    const come = this.#figuresCome(costs, headers)
    this.#isHeld = come.when === 'whole'
    this.#isStreamed = come.when === 'after' || isEventStream(headers)
    answer.begin(
      { status, reason, headers: this.#remover === null ? headers : withoutOutdated(headers) },
      come,
    )
  }

  data(chunk: Buffer): boolean {
    if (!this.#begun) {
      this.#begun = true
      this.#parts.onFirstByte()
    }
    this.#observer?.see(chunk)
    this.#parts.look(chunk)
    if (this.#remover === null) return this.#parts.answer.data(chunk)
    const wait = this.#remover.write(kept(chunk), this.#take)
    if (wait === null) return true
    // One read may bring many chunks: upstream goes on when the last of them has found room.
    this.#lastWait = wait
    wait.then((state) => {
      if (state !== 'open') this.#call?.abandon()
      else if (this.#lastWait === wait) this.#call?.resume()
    })
    return false
  }

  /** The client has room again. */
  onDrain(): void {
    if (this.#drained !== null) {
      this.#drained()
      this.#drained = null
    } else if (this.#remover === null) this.#call?.resume()
  }

  /** What the observer found, where there was one. */
  async observed(whole: boolean): Promise<Metered | null> {
    if (this.#observer !== null) return await this.#observer.end(whole)
    // The client left before upstream answered: there is a bill, and nothing was read that it could be made from.
    return this.#replyHead === null && this.#parts.reader !== null ? new SilentMeter().end(false) : null
  }

  async finish(figures: Figures | null, trailers: string[]): Promise<void> {
    const { answer } = this.#parts
    const whole = this.#remover === null || (await this.#remover.end(this.#take)) === 'whole'
    if (whole) answer.finish(figures, this.#remover === null ? trailers : withoutOutdated(trailers))
    else answer.cut()
  }

  async cut(): Promise<void> {
    await this.#remover?.breakOff(this.#take)
    this.#parts.answer.cut()
  }

  /** Gives back what the way it took has kept. */
  dispose(): void {
    this.#remover?.destroy()
    this.#drained?.()
  }

  readonly #take = (bytes: Buffer): Promise<void> | null => {
    if (this.#parts.answer.data(bytes)) return null
    return new Promise((resolve) => {
      this.#drained = resolve
    })
  }

  #figuresCome(costs: boolean, headers: string[]): FiguresCome {
    const isJson = isJsonType(firstValue(headers, 'content-type') ?? '')
    if (!costs && !(isJson && this.#parts.holdJson)) {
      return {
        when: 'now',
        figures: { costNanos: 0n, listNanos: 0n, balanceNanos: this.#parts.balanceNanos },
      }
    }
    return { when: isJson ? 'whole' : 'after' }
  }
}

function isEventStream(headers: string[]): boolean {
  return /^\s*text\/event-stream\b/i.test(firstValue(headers, 'content-type') ?? '')
}
