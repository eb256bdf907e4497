import { setTimeout as sleep } from 'node:timers/promises'
import { StoreGone, StoreRefused } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import type { Log } from '../kernel/log.ts'
import type { CallClosing, CallOpening, Settled } from './call.ts'
import { NOTHING_USED } from './call-columns.ts'
import type { SettlementSpool } from './settlement-spool.ts'

/** How many waiting closings are sent at once: as many as a batch of the database takes. */
export const CLOSINGS_SENT_AT_ONCE = 200

/** How long an answer waits for a settlement that the store cannot accept. It is then sent without figures. */
export const SETTLE_WAIT_MS = 2_000

const RETRY_FIRST_MS = 50
const RETRY_MAX_MS = 2_000

type OnSettled = (settled: Settled) => void

interface OutboxOptions {
  readonly store: { settle(closing: CallClosing): Promise<Settled> }
  readonly log: Log
  /** Null if the database is on the same disk: when this disk is full, a spool does not help. */
  readonly spool?: SettlementSpool | null
  /** Once it resolves, no earlier admission of this node can still take effect. */
  readonly raiseEpoch?: () => Promise<void>
  readonly onSettled?: (requestId: string) => void
  readonly waitMs?: number
}

interface Entry {
  closing: CallClosing
  onSettled: OnSettled
  /** The release of an admission whose answer was lost. The hold may not exist. */
  readonly isOrphan: boolean
  /** Whether the admission could still take effect after this release. */
  needsEpoch: boolean
  attempts: number
  /** Resolves when the closing is in the spool, or does not need it. Never rejects. */
  spooled: Promise<void>
  /** Rejects only if the store refused the closing or is closed. A spooled closing is not lost then. */
  readonly done: PromiseWithResolvers<Settled>
}

/** Sends every closing to the database until it has it. Sending one twice is harmless: the database applies it once. */
export class Outbox {
  readonly #from: OutboxOptions
  readonly #entries = new Map<string, Entry>()
  /** Those that the loop sends, because the first attempt failed, or an earlier process made it. */
  readonly #waiting = new Set<Entry>()
  #loop: Promise<void> | null = null
  #isOutageLogged = false
  #isClosed = false

  constructor(options: OutboxOptions) {
    this.#from = options
  }

  get waiting(): number {
    return this.#entries.size
  }

  /** Whether settlements would survive a crash. If not, no new call may be admitted. */
  get isDurable(): boolean {
    return this.#from.spool?.isDurable ?? true
  }

  /** Null if the store did not accept it in time. It is then sent again, and `onSettled` is called later. */
  async settle(closing: CallClosing, onSettled: OnSettled = NOTHING_TO_DO): Promise<Settled | null> {
    // The first closing of a call counts: a release must not overtake a bill that waits.
    const known = this.#entries.get(closing.requestId)
    if (known !== undefined) return await this.#answerOf(known)
    const entry = entryOf(closing, onSettled)
    this.#entries.set(closing.requestId, entry)
    if (await this.#send(entry)) return await entry.done.promise.catch(rethrowRefusal)
    return await this.#answerOf(entry)
  }

  /** Sends what an earlier process left. Calls `onApplied` for each closing that was new. Never rejects. */
  async replay(closings: readonly CallClosing[], onApplied: (closing: CallClosing) => void): Promise<void> {
    if (closings.length > 0)
      this.#from.log.warn(
        { settlements: closings.length },
        'settlements of the previous run are sent to the database',
      )
    const replayed = closings.map((closing) => {
      // If the answer to the first attempt was lost, that attempt may have applied it.
      const entry = entryOf(closing, ({ applied }) => {
        if (applied || entry.attempts > 1) onApplied(closing)
      })
      this.#add(entry)
      return entry.done.promise
    })
    this.#run(0)
    await Promise.allSettled(replayed)
  }

  /** Releases admissions whose answer was lost: the hold may exist, but the caller got an error and sent nothing. */
  release(openings: readonly CallOpening[]): void {
    for (const { requestId, atMs } of openings) {
      if (this.#entries.has(requestId)) continue
      if (this.#entries.size >= limits.storeQueueMax) {
        const message = 'an admission whose outcome is unknown keeps its reservation until this node stops'
        this.#from.log.error({ request: requestId }, message)
        continue
      }
      const closing: CallClosing = { ...NOTHING_USED, requestId, state: 'released', atMs }
      this.#add({ ...entryOf(closing, NOTHING_TO_DO), isOrphan: true, needsEpoch: true })
    }
    this.#run(0)
  }

  /** Tries once more what waits. Then the next process replays the spool, and other nodes interrupt the rest. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#loop
    await this.#sendSome()
  }

  #add(entry: Entry): void {
    // Without this, a rejection that nobody awaits would end the process. Callers that await it still get the error.
    entry.done.promise.catch(() => {})
    this.#entries.set(entry.closing.requestId, entry)
    this.#waiting.add(entry)
  }

  #run(pauseMs: number): void {
    // A loop without work would end before it is assigned, and no other would begin.
    if (this.#waiting.size > 0 && !this.#isClosed) this.#loop ??= this.#sendAll(pauseMs)
  }

  async #sendAll(firstPauseMs: number): Promise<void> {
    let pauseMs = firstPauseMs
    while (this.#waiting.size > 0 && !this.#isClosed) {
      if (pauseMs > 0) await sleep(pauseMs)
      const isAccepted = await this.#sendSome()
      pauseMs = isAccepted ? 0 : Math.min(Math.max(pauseMs * 2, RETRY_FIRST_MS), RETRY_MAX_MS)
    }
    // In the same turn as the last check, or a closing in between would not be sent.
    this.#loop = null
  }

  /** Sends the oldest closings. Returns whether the database took all of them. */
  async #sendSome(): Promise<boolean> {
    const some: Entry[] = []
    for (const entry of this.#waiting) if (some.push(entry) === CLOSINGS_SENT_AT_ONCE) break
    try {
      if (some.some(({ needsEpoch }) => needsEpoch)) await this.#from.raiseEpoch?.()
    } catch (error) {
      this.#logOutage(some.length, error)
      return false
    }
    for (const entry of some) entry.needsEpoch = false
    await Promise.all(some.map(({ spooled }) => spooled))
    const taken = await Promise.all(some.map((entry) => this.#send(entry)))
    return taken.every(Boolean)
  }

  /** Returns whether the closing needs no further attempt. Never rejects. */
  async #send(entry: Entry): Promise<boolean> {
    const { store } = this.#from
    entry.attempts += 1
    try {
      this.#settled(entry, await store.settle(entry.closing))
      return true
    } catch (error) {
      if (error instanceof StoreRefused) await this.#refused(entry, error)
      else if (!(error instanceof StoreGone)) {
        this.#keep(entry, error)
        return false
      }
      this.#forget(entry)
      entry.done.promise.catch(() => {})
      entry.done.reject(error)
      return true
    }
  }

  #settled(entry: Entry, settled: Settled): void {
    const { requestId: request } = entry.closing
    this.#from.spool?.remove(request)
    this.#from.onSettled?.(request)
    this.#isOutageLogged = false
    try {
      entry.onSettled(settled)
    } catch (err) {
      // The settlement is stored. Do not let this error escape, or the settlement would be sent forever.
      this.#from.log.error({ request, err }, 'unexpected error')
    }
    this.#forget(entry)
    entry.done.resolve(settled)
  }

  #forget(entry: Entry): void {
    this.#entries.delete(entry.closing.requestId)
    this.#waiting.delete(entry)
    // V8 chains the outgrown tables of a map and keeps their values until a full collection. If these referred to their
    // calls, all calls would be moved to the old generation: a third more CPU time per call.
    entry.closing = NOTHING_TO_CLOSE
    entry.onSettled = NOTHING_TO_DO
  }

  #keep(entry: Entry, error: unknown): void {
    const { spool, log } = this.#from
    const { closing, isOrphan, attempts } = entry
    if (attempts === 1 && !isOrphan) {
      entry.spooled = spool?.append(closing) ?? entry.spooled
      // Each settlement is logged once: thousands may be waiting, each sent many times.
      const about = { request: closing.requestId, cause: (error as Error).message }
      log.error(about, 'a settlement waits for the database')
    }
    if (isOrphan) this.#logOutage(1, error)
    // Those that have waited without an attempt go first.
    this.#waiting.delete(entry)
    this.#add(entry)
    this.#run(RETRY_FIRST_MS)
  }

  async #refused({ closing, isOrphan }: Entry, { message: cause }: StoreRefused): Promise<void> {
    // An admission that never took effect has nothing to release.
    if (isOrphan) return
    const { store, spool, log } = this.#from
    // Without a spool this log line is the only trace of the bill.
    const details = { request: closing.requestId, costNanos: String(closing.costNanos), cause }
    log.error(details, 'the database refused a settlement')
    await spool?.refuse(closing, cause)
    // Close the hold: the caller may be gone, and the hold would stay until the next start.
    const lost = { ...NOTHING_USED, requestId: closing.requestId, state: 'interrupted' } as const
    await store.settle({ ...lost, atMs: closing.atMs }).catch(() => {})
  }

  #logOutage(calls: number, error: unknown): void {
    if (this.#isOutageLogged) return
    this.#isOutageLogged = true
    const about = { calls, cause: (error as Error).message }
    this.#from.log.warn(about, 'admissions whose outcome is unknown wait for the database')
  }

  /** Waits for a while, but never less than until the closing is safe. */
  #answerOf(entry: Entry): Promise<Settled | null> {
    const timeout = sleep(this.#from.waitMs ?? SETTLE_WAIT_MS, null, { ref: false })
    const safe = timeout.then(() => entry.spooled).then(() => null)
    return Promise.race([entry.done.promise.catch(rethrowRefusal), safe])
  }
}

/** Rethrows a refusal of the database, which is a defect. Other errors become null. */
function rethrowRefusal(error: unknown): null {
  if (error instanceof StoreRefused) throw error
  return null
}

const NOTHING_TO_CLOSE: CallClosing = { ...NOTHING_USED, requestId: '', state: 'released', atMs: 0 }

const NOTHING_TO_DO = (): void => {}

const NOT_SPOOLED = Promise.resolve()

function entryOf(closing: CallClosing, onSettled: OnSettled): Entry {
  const done = Promise.withResolvers<Settled>()
  return { closing, onSettled, isOrphan: false, needsEpoch: false, attempts: 0, spooled: NOT_SPOOLED, done }
}
