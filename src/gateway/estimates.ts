/** The latest complete calls count most: before a call is added, what was learned before it counts this much. */
const DECAY = 0.8

/** Bounds of what can be learned, so that a payer cannot train an estimate far. */
const TOKENS_PER_BYTE = { least: 1 / 8, most: 1, unknown: 1 / 4 }
const TOKENS_PER_MS = { least: 0.01, most: 0.5, unknown: 0.05 }

/** With fewer tokens the time to the first token is most of the time. */
const SPEED_TOKENS_MIN = 16

const CACHED_CALLS = 3

const ENTRIES_MAX = 20_000

const CONTAINER_MS = 20 * 60_000

export interface CompleteCall {
  readonly keyId: string
  readonly model: string
  readonly tier: string
  readonly outputTokens: number
  readonly visibleTokens: number | null
  readonly visibleBytes: number
  /** From upstream's first event to the end, without the time in which the client did not read; null: not comparable. */
  readonly generatedMs: number | null
  readonly inputTokens: number
  readonly cachedTokens: number
  readonly requestBytes: number | null
}

export interface Figures {
  readonly outputTokensPerByte: number
  readonly outputTokensPerMs: number
  readonly inputTokensPerByte: number
  readonly cachedShare: number
}

/**
 * Statistics of the latest complete calls on this node, in bounded memory: tokens per byte and per millisecond for each key,
 * model and tier, and for each model; the share of cached input for each key and model.
 */
export class Estimates {
  readonly #learned = new Recent<Learned>()
  readonly #cachedShares = new Recent<readonly number[]>()
  readonly #responses = new Recent<number>()
  readonly #containers = new Recent<number>()

  learn(call: CompleteCall): void {
    const { keyId, model, tier } = call
    for (const name of [nameOf(keyId, model, tier), model]) {
      const learned = this.#learned.get(name) ?? new Learned()
      learned.add(call)
      this.#learned.set(name, learned)
    }
    if (call.inputTokens === 0) return
    const own = nameOf(keyId, model)
    const share = Math.min(1, call.cachedTokens / call.inputTokens)
    this.#cachedShares.set(own, [...(this.#cachedShares.get(own) ?? []).slice(1 - CACHED_CALLS), share])
  }

  figuresFor(keyId: string, model: string | null, tier: string): Figures {
    const own = model === null ? undefined : this.#learned.get(nameOf(keyId, model, tier))
    const all = model === null ? undefined : this.#learned.get(model)
    const figure = (ratio: 'output' | 'speed' | 'input', bounds: typeof TOKENS_PER_BYTE) => {
      const value = own?.[ratio].value ?? all?.[ratio].value ?? bounds.unknown
      return Math.min(Math.max(value, bounds.least), bounds.most)
    }
    const shares = model === null ? undefined : this.#cachedShares.get(nameOf(keyId, model))
    return {
      outputTokensPerByte: figure('output', TOKENS_PER_BYTE),
      outputTokensPerMs: figure('speed', TOKENS_PER_MS),
      inputTokensPerByte: figure('input', TOKENS_PER_BYTE),
      cachedShare: shares === undefined ? 0 : Math.min(...shares),
    }
  }

  noteResponse(id: string, tokens: number): void {
    this.#responses.set(id, tokens)
  }

  contextOf(responseId: string): number {
    return this.#responses.get(responseId) ?? 0
  }

  chargeContainers(ids: readonly string[], nowMs: number): number {
    let charged = 0
    for (const id of ids) {
      const sinceMs = this.#containers.get(id)
      if (sinceMs !== undefined && nowMs - sinceMs < CONTAINER_MS) continue
      this.#containers.set(id, nowMs)
      charged++
    }
    return charged
  }
}

function nameOf(...parts: readonly string[]): string {
  return parts.join('\0')
}

class Learned {
  readonly output = new Ratio()
  readonly speed = new Ratio()
  readonly input = new Ratio()

  add(call: CompleteCall): void {
    if (call.visibleTokens !== null) this.output.add(call.visibleTokens, call.visibleBytes)
    if (call.outputTokens >= SPEED_TOKENS_MIN && call.generatedMs !== null)
      this.speed.add(call.outputTokens, call.generatedMs)
    if (call.requestBytes !== null) this.input.add(call.inputTokens, call.requestBytes)
  }
}

class Ratio {
  #over = 0
  #under = 0

  get value(): number | undefined {
    return this.#under > 0 ? this.#over / this.#under : undefined
  }

  add(over: number, under: number): void {
    if (!(over > 0 && under > 0)) return
    this.#over = this.#over * DECAY + over
    this.#under = this.#under * DECAY + under
  }
}

/** A map that forgets the entry that was not used for longest. */
class Recent<Value> {
  readonly #entries = new Map<string, Value>()

  get(name: string): Value | undefined {
    const value = this.#entries.get(name)
    if (value === undefined) return undefined
    this.#entries.delete(name)
    this.#entries.set(name, value)
    return value
  }

  set(name: string, value: Value): void {
    this.#entries.delete(name)
    const [oldest] = this.#entries.keys()
    if (this.#entries.size >= ENTRIES_MAX && oldest !== undefined) this.#entries.delete(oldest)
    this.#entries.set(name, value)
  }
}

export interface ReplyTimes {
  readonly silentMs: number
  /** From upstream's first event to the end, without pauses of the client; null for a reply without events. */
  readonly generatedMs: number | null
  /** How long the client had not read when the reply ended, or a moment before: it may have ended unseen meanwhile. */
  readonly stalledMs: number
}

/** The longest pause between pieces of output that counts as the network's and not the model's. */
const PAUSE_MS_MAX = 1_000

/** A reply that ends so soon after a pause may have ended during the pause. */
const AFTER_PAUSE_MS = 5_000

/**
 * Adds up the time in which a reply showed nothing of the answer, from upstream's first event on: before its first visible
 * output, and in gaps of more than a second. Time in which upstream was not read, because the client did not read, is no
 * silence of the model.
 */
export class Silence {
  #visibleBytes = 0
  #firstMs: number | null = null
  #lastMs = 0
  #silentMs = 0
  #pausedSinceMs: number | null = null
  #pausedMs = 0
  #longestPause = { ms: 0, endedMs: -Infinity }

  see(visibleBytes: number, nowMs: number): void {
    if (this.#firstMs === null) {
      this.#firstMs = nowMs
      this.#lastMs = nowMs
    }
    if (visibleBytes === this.#visibleBytes) return
    this.#silentMs = this.until(nowMs)
    this.#visibleBytes = visibleBytes
    this.#lastMs = nowMs
  }

  pause(nowMs: number): void {
    this.#pausedSinceMs ??= nowMs
  }

  resume(nowMs: number): void {
    if (this.#pausedSinceMs === null) return
    const pausedMs = nowMs - this.#pausedSinceMs
    this.#pausedSinceMs = null
    const { ms, endedMs } = this.#longestPause
    if (pausedMs >= ms || nowMs - endedMs > AFTER_PAUSE_MS)
      this.#longestPause = { ms: pausedMs, endedMs: nowMs }
    if (this.#firstMs === null) return
    this.#pausedMs += pausedMs
    this.#lastMs += pausedMs
  }

  pausedFor(nowMs: number): number {
    return this.#pausedSinceMs === null ? 0 : nowMs - this.#pausedSinceMs
  }

  generatedMs(nowMs: number): number | null {
    return this.#firstMs === null ? null : nowMs - this.#firstMs - this.#pausedMs - this.pausedFor(nowMs)
  }

  timesAt(nowMs: number): ReplyTimes {
    const { ms, endedMs } = this.#longestPause
    return {
      silentMs: this.until(nowMs),
      generatedMs: this.generatedMs(nowMs),
      stalledMs: Math.max(this.pausedFor(nowMs), nowMs - endedMs <= AFTER_PAUSE_MS ? ms : 0),
    }
  }

  until(nowMs: number): number {
    if (this.#firstMs === null) return 0
    const gapMs = (this.#pausedSinceMs ?? nowMs) - this.#lastMs
    return this.#silentMs + (this.#visibleBytes === 0 || gapMs > PAUSE_MS_MAX ? gapMs : 0)
  }
}
