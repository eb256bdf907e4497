import { setTimeout as pause } from 'node:timers/promises'
import type { Api } from './api.ts'
import { callTable, type LoggedCall, type LogQuery, readCalls } from './logged-call.ts'
import { print, type TerminalStyle } from './terminal.ts'
import { Unreachable } from './transport.ts'

/**
 * Finds each call once, when it is final. The log is ordered by when calls began, but calls end in any order, so new
 * final calls cannot be read off the top of the log. Each look
 *   1. notes where the top is,
 *   2. asks which calls are in flight or deferred, among calls that were and calls begun since the last look's top,
 *   3. takes the final calls that have begun since then, and the calls that were open and are no more.
 * A call that step 2 does not see open is either final by step 3, or begins above the top of step 1 and is found
 * by the next look. The filter is left to the API: the cost of a call in flight is not known here.
 */

/** Calls come into the log in the order of their admission, but for the moment until the admission is on the disk. */
const SLACK_MS = 10_000
/** How far back the first look searches for open calls: batches are done within a day. */
const OPEN_SINCE_MS = { in_flight: 60 * 60 * 1000, deferred: 25 * 60 * 60 * 1000 } as const
/** In the order in which they are asked for: a call in flight may become deferred meanwhile, and not the other way round. */
const OPEN_STATES = ['in_flight', 'deferred'] as const
/** Calls that began within this time of each other are asked for together. */
const NEAR_MS = 1_000

type OpenState = (typeof OPEN_STATES)[number]

export type ListCalls = (query: LogQuery) => AsyncIterable<LoggedCall>

interface Span {
  readonly start: number
  /** The end is not part of the span. */
  readonly end: number
}

export class CallFollower {
  readonly #list: ListCalls
  readonly #filter: LogQuery
  /** Everything before this instant is known, but for the open calls. Null: the log was empty. */
  #from: number | null = null
  /** The calls in flight and those deferred, with when they began. */
  #open = new Map<string, number>()
  /** The final calls that were found already, and that a later look could find again. */
  readonly #seen = new Map<string, number>()

  constructor(list: ListCalls, filter: LogQuery) {
    this.#list = list
    this.#filter = filter
  }

  /** The newest final calls that are there already, oldest first. Calls that end from now on are left to `look`. */
  async begin(limit: number): Promise<LoggedCall[]> {
    const top = await this.#top()
    this.#from = top === null ? null : top - SLACK_MS
    if (top !== null)
      this.#open = await this.#findOpen((state) => [{ start: top - OPEN_SINCE_MS[state], end: Infinity }])
    for await (const call of this.#list({ ...this.#filter, ...during(this.#from, Infinity) })) {
      // A final call that is in #open has ended since we began: `look` may still have to find it.
      if (isFinal(call) && !this.#open.has(call.id)) this.#seen.set(call.id, startOf(call))
    }
    if (limit === 0) return []
    const newest: LoggedCall[] = []
    // Open calls are in the list too, and do not count.
    const listed = String(limit + this.#open.size)
    for await (const call of this.#list({ ...this.#filter, limit: listed })) {
      if (isFinal(call) && newest.length < limit) newest.push(call)
    }
    for (const call of newest) this.#seen.set(call.id, startOf(call))
    return newest.reverse()
  }

  /** The calls that have become final since the last look, in the order in which they ended. */
  async look(): Promise<LoggedCall[]> {
    const top = await this.#top()
    const from = this.#from
    const recent = { start: from ?? 0, end: Infinity }
    const before = this.#open
    const older = [...before.values()].filter((at) => at < recent.start)
    const open = await this.#findOpen(() => [...spansOf(older), recent])

    const found = new Map<string, LoggedCall>()
    for await (const call of this.#list({ ...this.#filter, ...during(from, Infinity) }))
      found.set(call.id, call)
    const ended = new Map([...before].filter(([id, at]) => at < recent.start && !open.has(id)))
    for (const { start, end } of spansOf([...ended.values()])) {
      for await (const call of this.#list({ ...this.#filter, ...during(start, end) })) {
        if (ended.has(call.id)) found.set(call.id, call)
      }
    }

    const fresh = [...found.values()].filter((call) => isFinal(call) && !this.#seen.has(call.id))
    // The state changes only now: a look that broke off is to find the same calls again.
    this.#open = open
    for (const call of fresh) this.#seen.set(call.id, startOf(call))
    if (top !== null) this.#from = Math.max(from ?? 0, top - SLACK_MS)
    for (const [id, at] of this.#seen) {
      if (at < (this.#from ?? 0) && !open.has(id)) this.#seen.delete(id)
    }
    return fresh.sort((a, b) => endOf(a) - endOf(b))
  }

  async #top(): Promise<number | null> {
    for await (const call of this.#list({ limit: '1' })) return startOf(call)
    return null
  }

  async #findOpen(spansFor: (state: OpenState) => readonly Span[]): Promise<Map<string, number>> {
    const open = new Map<string, number>()
    for (const state of OPEN_STATES) {
      for (const { start, end } of spansFor(state)) {
        for await (const call of this.#list({ status: state, ...during(start, end) }))
          open.set(call.id, startOf(call))
      }
    }
    return open
  }
}

/** Spans that cover the instants; instants that are near each other share a span. */
function spansOf(instants: readonly number[]): Span[] {
  const spans: Span[] = []
  for (const at of instants.toSorted((a, b) => a - b)) {
    const last = spans.at(-1)
    if (last !== undefined && at - last.end < NEAR_MS)
      spans[spans.length - 1] = { start: last.start, end: at + 1 }
    else spans.push({ start: at, end: at + 1 })
  }
  return spans
}

function during(start: number | null, end: number): LogQuery {
  return {
    ...(start === null ? {} : { start: new Date(Math.max(0, start)).toISOString() }),
    ...(end === Infinity ? {} : { end: new Date(end).toISOString() }),
  }
}

function isFinal({ state }: LoggedCall): boolean {
  return OPEN_STATES.every((open) => state !== open)
}

function startOf({ started_at }: LoggedCall): number {
  return Date.parse(started_at)
}

function endOf({ ended_at, started_at }: LoggedCall): number {
  return Date.parse(ended_at ?? started_at)
}

const LOOK_EVERY_MS = 1_000

interface Followed {
  readonly path: string
  readonly filter: LogQuery
  /** How many earlier calls are shown first. */
  readonly limit: number
  readonly asJson: boolean
}

/** Prints calls as they become final, until Ctrl-C or SIGTERM. */
export async function followRequests(api: Api, followed: Followed, style: TerminalStyle): Promise<void> {
  const { path, filter, limit, asJson } = followed
  const stopping = new AbortController()
  const stop = () => stopping.abort()
  // Signals are caught only once: a second Ctrl-C ends the process whatever the process is doing.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, stop)
  const { signal } = stopping
  const list = (query: LogQuery) => readCalls(api, path, query, signal)
  const follower = new CallFollower(list, filter)
  const table = callTable(style)
  const show = async (calls: readonly LoggedCall[]) => {
    for (const call of calls) await print(asJson ? `${call.json}\n` : table.line(call))
  }
  try {
    const earlier = await follower.begin(limit)
    if (!asJson) await print(table.title)
    await show(earlier)
    let isLost = false
    while (!signal.aborted) {
      await pause(LOOK_EVERY_MS, undefined, { signal })
      try {
        await show(await follower.look())
        if (isLost) process.stderr.write('The gateway answers again.\n')
        isLost = false
      } catch (error) {
        if (signal.aborted || !(error instanceof Unreachable)) throw error
        // A gateway that restarts is no reason to stop looking; calls that end meanwhile are found afterwards.
        if (!isLost) process.stderr.write(`${error.message}\nTrying again until it answers, or Ctrl-C.\n`)
        isLost = true
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
