/** Calls of a model that its speed is taken from, and models that are remembered. Beyond either the oldest go. */
const CALLS_MAX = 20
const MODELS_MAX = 500

/** Taken for a model that has completed no call here yet: what the slower reasoning models write in a millisecond. */
const TOKENS_PER_MS_UNKNOWN = 0.05

interface Shown {
  readonly tokens: number
  readonly ms: number
}

/** How fast models write, as their last complete calls on this node have shown. */
export class OutputSpeeds {
  readonly #models = new Map<string, Shown[]>()

  note(model: string, tokens: number, ms: number): void {
    if (tokens <= 0 || ms <= 0) return
    let calls = this.#models.get(model)
    if (calls === undefined) {
      const [oldest] = this.#models.keys()
      if (this.#models.size >= MODELS_MAX && oldest !== undefined) this.#models.delete(oldest)
      calls = []
      this.#models.set(model, calls)
    }
    if (calls.length === CALLS_MAX) calls.shift()
    calls.push({ tokens, ms })
  }

  tokensPerMs(model: string | null): number {
    const calls = model === null ? undefined : this.#models.get(model)
    if (calls === undefined) return TOKENS_PER_MS_UNKNOWN
    return calls.reduce((sum, { tokens }) => sum + tokens, 0) / calls.reduce((sum, { ms }) => sum + ms, 0)
  }
}

/** Pauses between pieces of output that are the network's and not the model's. */
const PAUSE_MS_MAX = 1_000

/** Adds up the time in which a reply showed nothing: before its first visible output, and in gaps of more than a second. */
export class Silence {
  #visibleBytes = 0
  #lastMs: number
  #silentMs = 0

  constructor(startedMs: number) {
    this.#lastMs = startedMs
  }

  /** After each chunk, with all that was visible until then. */
  see(visibleBytes: number, nowMs: number): void {
    if (visibleBytes === this.#visibleBytes) return
    this.#silentMs = this.until(nowMs)
    this.#visibleBytes = visibleBytes
    this.#lastMs = nowMs
  }

  /** The silence in all, if the reply ends now. */
  until(nowMs: number): number {
    const gapMs = nowMs - this.#lastMs
    return this.#silentMs + (this.#visibleBytes === 0 || gapMs > PAUSE_MS_MAX ? gapMs : 0)
  }
}
