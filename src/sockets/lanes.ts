import { RecentEntries } from '../kernel/recent-entries.ts'
import type { ReplyDocument } from '../metering/json-shape.ts'

/** The lane of events and messages that name none. */
export const NO_LANE = ''

/** The tag of a turn that adds input to a running response. All waiting steers of a lane become one successor. */
export const STEER = 'response.steer'

/** An event of upstream, as far as it concerns turns. */
export interface ServerEvent {
  readonly kind: 'began' | 'part' | 'ended' | 'failed' | 'transcribed' | 'other'
  readonly lane: string
  readonly responseId: string | null
  /** The client message that an error names; null if it names none. */
  readonly tag: string | null
  /** The HTTP status that an error states. */
  readonly status: number
  readonly usage: unknown
  readonly stopReason: string | null
  readonly itemId: string | null
  /** The event, if its turn reads the usage in it. */
  readonly document: ReplyDocument | null
}

export const OTHER_EVENT: ServerEvent = {
  kind: 'other',
  lane: NO_LANE,
  responseId: null,
  tag: null,
  status: 400,
  usage: null,
  stopReason: null,
  itemId: null,
  document: null,
}

/** A turn in doubt ends after this time without any event of its lane. */
export const SILENT_LANE_MS = 60_000

/** How many ended responses are remembered at least. Upstream may name them again. */
const ENDED_MIN = 128

/** A turn from the moment its message was sent until it ends. */
export interface OpenTurn<Turn> {
  readonly turn: Turn
  readonly lane: string
  readonly tag: string | null
  readonly sentMs: number
  responseId: string | null
  hasBegun: boolean
  /** When its lane had an event last. */
  heardMs: number
  /** Why it may be over: an error that names no turn, or an event of another response in its lane. */
  doubt: ServerEvent | null
}

/** `reject`: the turn never began. */
export interface Ending<Turn> {
  readonly kind: 'end' | 'reject'
  readonly open: OpenTurn<Turn>
}

/** `adopt`: upstream answers nobody. Add a turn for this event, and pass it again. */
export type LaneStep<Turn> =
  | Ending<Turn>
  | { readonly kind: 'begin' | 'part'; readonly open: OpenTurn<Turn> }
  | { readonly kind: 'adopt' }

const NOTHING: readonly never[] = []
const ADOPT = [{ kind: 'adopt' }] as const

/**
 * Decides to which turn an event of upstream belongs. In each lane, upstream answers in order, one response at a time.
 * An error that names no turn ends none, because clients can cause errors.
 */
export class Lanes<Turn> {
  #open: OpenTurn<Turn>[] = []
  readonly #ended = new RecentEntries<'billed' | 'free'>(ENDED_MIN)

  get open(): readonly OpenTurn<Turn>[] {
    return this.#open
  }

  add(turn: Turn, lane: string, tag: string | null, nowMs: number): void {
    const times = { sentMs: nowMs, heardMs: nowMs }
    this.#open.push({ turn, lane, tag, ...times, responseId: null, hasBegun: false, doubt: null })
  }

  hear(event: ServerEvent, nowMs: number): readonly LaneStep<Turn>[] {
    for (const open of this.#open) if (open.lane === event.lane) open.heardMs = nowMs
    if (event.kind === 'began' || event.kind === 'ended') return this.#answer(event)
    if (event.kind === 'part') {
      const open = this.#find(event.responseId) ?? this.#runningFor(event.lane)
      return open === null ? NOTHING : [this.#part(open, event)]
    }
    return event.kind === 'failed' ? this.#fail(event) : NOTHING
  }

  /** Call this when upstream is read again after a pause. */
  resume(nowMs: number): void {
    for (const open of this.#open) open.heardMs = nowMs
  }

  /** Ends the turns in doubt whose lanes are silent. A turn waits while a response of its lane runs. */
  endSilent(nowMs: number): readonly Ending<Turn>[] {
    const isOver = (open: OpenTurn<Turn>) =>
      open.doubt !== null && isSilent(open, nowMs) && (open.hasBegun || this.#runningIn(open.lane) === null)
    return this.#open.filter(isOver).map((open) => this.#end(open))
  }

  /** Ends all turns with the socket. Of those that wait in a lane, upstream can have worked only on the next one. */
  endAll(): readonly Ending<Turn>[] {
    const busy = new Set(this.#open.filter(hasBegun).map(({ lane }) => lane))
    return this.#open.splice(0).map((open) => {
      const isNext = open.doubt === null && !busy.has(open.lane)
      busy.add(open.lane)
      return { kind: open.hasBegun || isNext ? 'end' : 'reject', open }
    })
  }

  /** Ignores this response from now on. */
  ignore(responseId: string | null): void {
    if (responseId !== null) this.#ended.set(responseId, 'billed')
  }

  /** The response ended without a cost. If upstream still ends it, it is adopted, so that its usage is billed. */
  endedFree(responseId: string | null): void {
    if (responseId !== null) this.#ended.set(responseId, 'free')
  }

  /** Whether a turn sent until then runs. One that upstream does not begin stops counting when its lane is silent. */
  runs(nowMs: number, sentUntilMs: number): boolean {
    return this.#open.some((open) => open.sentMs <= sentUntilMs && (open.hasBegun || !isSilent(open, nowMs)))
  }

  /** An event that begins or ends a response. */
  #answer(event: ServerEvent): readonly LaneStep<Turn>[] {
    const { kind, responseId, lane } = event
    const known = this.#find(responseId)
    if (known === null && responseId !== null && this.#ended.get(responseId) === 'billed') return NOTHING
    const waiting = this.#open.filter((open) => !open.hasBegun && open.lane === lane)
    const next = waiting.find(({ doubt }) => doubt === null) ?? waiting[0]
    // Without an id, it belongs to the response that runs.
    const running = responseId === null ? this.#runningFor(lane) : known
    if (running !== null && (known !== null || next === undefined || kind === 'ended'))
      return [kind === 'ended' ? this.#end(running) : this.#part(running, event)]
    if (next === undefined) return ADOPT
    next.hasBegun = true
    next.responseId = responseId
    const joined = next.tag === STEER ? waiting.filter((open) => open !== next && open.tag === STEER) : []
    const steps: LaneStep<Turn>[] = joined.map((open) => this.#end(open))
    const first = this.#part(next, event)
    return [...steps, { kind: 'begin', open: next }, kind === 'ended' ? this.#end(next) : first]
  }

  /** Only one response of a lane runs, so the others in it may be over. */
  #part(open: OpenTurn<Turn>, event: ServerEvent): LaneStep<Turn> {
    open.doubt = null
    for (const other of this.#open)
      if (other !== open && other.hasBegun && other.lane === open.lane) other.doubt ??= event
    return { kind: 'part', open }
  }

  #fail(event: ServerEvent): readonly LaneStep<Turn>[] {
    const { lane, tag } = event
    const inLane = this.#open.filter((open) => lane === NO_LANE || open.lane === lane)
    if (tag === null) for (const open of inLane) open.doubt ??= event
    const named = tag === null ? undefined : inLane.find((open) => !open.hasBegun && open.tag === tag)
    return named === undefined ? NOTHING : [this.#end(named)]
  }

  #end(open: OpenTurn<Turn>): Ending<Turn> {
    this.#open = this.#open.filter((each) => each !== open)
    this.ignore(open.responseId)
    return { kind: open.hasBegun ? 'end' : 'reject', open }
  }

  #find(responseId: string | null): OpenTurn<Turn> | null {
    if (responseId === null) return null
    return this.#open.find((open) => open.responseId === responseId) ?? null
  }

  /** The response to which an event without an id belongs: the only one that has begun, else that of the lane. */
  #runningFor(lane: string): OpenTurn<Turn> | null {
    const first = this.#open.find(hasBegun) ?? null
    return first === this.#open.findLast(hasBegun) ? first : this.#runningIn(lane)
  }

  #runningIn(lane: string): OpenTurn<Turn> | null {
    const inLane = (open: OpenTurn<Turn>) => open.hasBegun && open.lane === lane
    return (
      this.#open.find((open) => inLane(open) && open.doubt === null) ?? this.#open.findLast(inLane) ?? null
    )
  }
}

const hasBegun = (open: { readonly hasBegun: boolean }): boolean => open.hasBegun

const isSilent = ({ heardMs }: { readonly heardMs: number }, nowMs: number): boolean =>
  nowMs - heardMs >= SILENT_LANE_MS
