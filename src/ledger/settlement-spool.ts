import { once } from 'node:events'
import { appendFile, mkdir, open, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import type { Log } from '../kernel/log.ts'
import { startThread } from '../kernel/start-thread.ts'
import type { CallClosing } from './call.ts'
import { amountsAsText, readSpoolFile, refuseOldSpool, type SpoolRow, toSpoolRow } from './spool-file.ts'
import type { SpoolAnswer, SpoolChange } from './spool-thread.ts'

/** Settlements in the spool, in bytes. Beyond it they wait in memory alone, and no new call is admitted. */
const SPOOL_BYTES_MAX = 64 * 1024 ** 2

/** How long an answer waits for the disk of the spool. Then it leaves, and no new call is admitted meanwhile. */
export const SPOOL_WRITE_MS = 5_000

/**
 * Settlements that the store cannot take now, on the local disk, so that they outlive the process. A replay of a settlement
 * that the store had taken does no harm: the store closes a hold once. Only one process may use a spool.
 */
export interface SettlementSpool {
  /**
   * Resolves when the settlement is on the disk. Never rejects: if the disk fails or takes too long, it resolves too, the
   * log says why, and `isSound` is false until every waiting settlement is on the disk or taken.
   */
  keep(closing: CallClosing): Promise<void>
  /** The store has the settlement. A removal that a crash loses is one more replay. Does nothing if it was not kept. */
  done(requestId: string): void
  /** The store will never take the settlement: it goes to a file of its own, for a person, whether it was kept or not. */
  refuse(closing: CallClosing, reason: string): Promise<void>
  /** The waiting settlements, oldest first: after the start, those that an earlier process has left. */
  left(): readonly CallClosing[]
  readonly waiting: number
  /** False while settlements wait in memory alone, or for a disk that does not answer. */
  readonly isSound: boolean
  close(): Promise<void>
}

const FILE = 'settlements.db'
const REFUSED_FILE = 'refused.jsonl'

/** How soon a disk that failed is tried again. */
const RETRY_MS = 1_000

export interface SpoolOptions {
  /** Replaced in tests of failing disks. */
  openWriter(path: string): SpoolWriter
  readonly bytesMax: number
}

/** Writes the file in another thread. One change at a time; a change that has resolved is on the disk. */
export interface SpoolWriter {
  write(change: SpoolChange): Promise<void>
  close(): Promise<void>
}

/** Opens the spool in `dir` and reads the settlements left there. Throws if the directory cannot be made or read. */
export async function openSettlementSpool(
  dir: string,
  log: Log,
  { openWriter = openSpoolWriter, bytesMax = SPOOL_BYTES_MAX }: Partial<SpoolOptions> = {},
): Promise<SettlementSpool> {
  await makeDirectory(dir)
  refuseOldSpool(dir)
  const path = join(dir, FILE)
  const { left, damagedFile } = readSpoolFile(path)
  if (damagedFile !== null) log.error({ damagedFile }, 'the settlement spool was damaged and is kept aside')
  return new Spool({ dir, log, bytesMax, writer: openWriter(path) }, left)
}

async function makeDirectory(dir: string): Promise<void> {
  if ((await mkdir(dir, { recursive: true, mode: 0o700 })) === undefined) return
  // Without this sync of the parent, a crash might lose the name of the new directory.
  const parent = await open(dirname(dir))
  await parent.sync().finally(() => parent.close())
}

/** The main thread's side of the thread that writes. A thread that died is started again by the next change. */
export function openSpoolWriter(path: string): SpoolWriter {
  let thread: Worker | null = start()

  function start(): Worker {
    const started = startThread(import.meta.url, 'spool-thread', path)
    return started.on('error', () => {
      thread = null
    })
  }

  return {
    async write(change) {
      thread ??= start()
      thread.postMessage(change)
      const [answer] = (await once(thread, 'message')) as [SpoolAnswer]
      if (answer !== null) throw new Error(answer)
    },
    async close() {
      if (thread === null) return
      const ended = once(thread, 'exit')
      thread.postMessage('close')
      await ended
    },
  }
}

interface SpoolParts extends Omit<SpoolOptions, 'openWriter'> {
  readonly dir: string
  readonly log: Log
  readonly writer: SpoolWriter
}

interface Kept {
  readonly closing: CallClosing
  readonly row: SpoolRow
  /** Resolved when the settlement is on the disk, or is not to be waited for. */
  readonly told: PromiseWithResolvers<void>
}

class Spool implements SettlementSpool {
  readonly #parts: SpoolParts
  /** All settlements that the store has not taken, on the disk or not, oldest first. */
  readonly #waiting = new Map<string, Kept>()
  #waitingBytes = 0
  /** The changes that the file lacks: settlements that have come, and ids that the store has taken. */
  #come: Kept[] = []
  #taken: string[] = []
  #writing: Promise<void> | null = null
  #failed = false
  /** A write takes so long that no answer waits for it any more. */
  #stuck = false
  /** There was no room for a settlement, and the spool is still more than half full. */
  #full = false
  /** Settlements that there was no room for: the settler has them in memory alone. */
  readonly #unkept = new Set<string>()
  #retry: NodeJS.Timeout | undefined
  #closed = false

  constructor(parts: SpoolParts, left: readonly CallClosing[]) {
    this.#parts = parts
    for (const closing of left) this.#add(closing, toSpoolRow(closing)).told.resolve()
  }

  get waiting(): number {
    return this.#waiting.size
  }

  get isSound(): boolean {
    if (this.#unkept.size > 0) return false
    return this.#waiting.size === 0 || !(this.#failed || this.#stuck || this.#full)
  }

  left(): readonly CallClosing[] {
    return [...this.#waiting.values()].map(({ closing }) => closing)
  }

  async keep(closing: CallClosing): Promise<void> {
    const before = this.#waiting.get(closing.requestId)
    // The first closing of a call counts, and any later one is ignored.
    if (before !== undefined) return await before.told.promise
    if (this.#closed) {
      this.#parts.log.error({ request: closing.requestId }, 'a settlement came after the spool was closed')
      return
    }
    const row = toSpoolRow(closing)
    if (this.#waitingBytes + row.json.length > this.#parts.bytesMax) {
      if (!this.#full) this.#parts.log.error({ settlements: this.waiting }, 'the settlement spool is full')
      this.#full = true
      this.#unkept.add(closing.requestId)
      return
    }
    const kept = this.#add(closing, row)
    this.#come.push(kept)
    if (this.#failed || this.#stuck) kept.told.resolve()
    // A disk that has failed is tried again in a while, with everything that waits by then.
    if (!this.#failed) this.#write()
    await kept.told.promise
  }

  done(requestId: string): void {
    this.#unkept.delete(requestId)
    const kept = this.#waiting.get(requestId)
    if (kept === undefined) return
    this.#waiting.delete(requestId)
    this.#waitingBytes -= kept.row.json.length
    if (this.#waitingBytes <= this.#parts.bytesMax / 2) this.#full = false
    kept.told.resolve()
    this.#taken.push(requestId)
    if (!this.#failed && !this.#closed) this.#write()
  }

  async refuse(closing: CallClosing, reason: string): Promise<void> {
    const { requestId } = closing
    this.#unkept.delete(requestId)
    const { dir, bytesMax } = this.#parts
    const file = join(dir, REFUSED_FILE)
    const line = `${JSON.stringify({ refused: reason, kept: amountsAsText(closing) })}\n`
    try {
      const { size } = await stat(file).catch(() => ({ size: 0 }))
      if (size + line.length > bytesMax) throw new Error(`${REFUSED_FILE} is full`)
      await appendFile(file, line, { mode: 0o600, flush: true })
      this.done(requestId)
    } catch (error) {
      // A refused settlement that was kept stays in the spool, and the next start tries again.
      const cause = (error as Error).message
      this.#parts.log.error({ request: requestId, cause }, 'a refused settlement cannot be put aside')
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#retry)
    // A disk that does not answer must not keep the process from ending.
    await Promise.race([this.#finish(), sleep(SPOOL_WRITE_MS, undefined, { ref: false })])
  }

  async #finish(): Promise<void> {
    this.#write()
    await this.#writing
    // The write that was under way may have failed just now, and no timer would retry it after the close.
    if (this.#failed) this.#write()
    await this.#writing
    await this.#parts.writer.close().catch(() => {})
  }

  #add(closing: CallClosing, row: SpoolRow): Kept {
    const kept: Kept = { closing, row, told: Promise.withResolvers() }
    this.#waiting.set(closing.requestId, kept)
    this.#waitingBytes += row.json.length
    return kept
  }

  /** One write at a time. Settlements that come meanwhile go together with the next write. */
  #write(): void {
    if (this.#writing === null && this.#isBehind()) this.#writing = this.#writeAll()
  }

  #isBehind(): boolean {
    return this.#come.length > 0 || this.#taken.length > 0
  }

  async #writeAll(): Promise<void> {
    try {
      while (this.#isBehind()) {
        await this.#waitAtMost(this.#writeOnce())
        if (this.#failed)
          this.#parts.log.info({ settlements: this.waiting }, 'the settlement spool works again')
        this.#failed = false
      }
    } catch (error) {
      this.#fail(error as Error)
    } finally {
      // Cleared in the same turn as the last `#isBehind`, or a settlement that comes in between would not be written.
      this.#writing = null
    }
  }

  async #waitAtMost(write: Promise<void>): Promise<void> {
    const timer = setTimeout(() => {
      this.#stuck = true
      this.#parts.log.error({ settlements: this.waiting }, 'the disk of the settlement spool does not answer')
      this.#tellAll()
    }, SPOOL_WRITE_MS)
    await write.finally(() => {
      clearTimeout(timer)
      this.#stuck = false
    })
  }

  #tellAll(): void {
    for (const { told } of this.#waiting.values()) told.resolve()
  }

  async #writeOnce(): Promise<void> {
    const takenIds = this.#taken
    // A settlement that the store has taken meanwhile needs no row.
    const come = this.#come.filter((kept) => this.#waiting.get(kept.closing.requestId) === kept)
    this.#taken = []
    this.#come = []
    try {
      await this.#parts.writer.write({ takenIds, rows: come.map(({ row }) => row) })
    } catch (error) {
      this.#taken.unshift(...takenIds)
      throw error
    }
    for (const { told } of come) told.resolve()
  }

  /** After a failed fsync the content of the disk is unknown: every waiting settlement is written again. */
  #fail(error: Error): void {
    if (!this.#failed) {
      this.#parts.log.error(
        { settlements: this.waiting, cause: error.message },
        'the settlement spool cannot be written; no new call is admitted while settlements wait',
      )
    }
    this.#failed = true
    this.#come = [...this.#waiting.values()]
    this.#tellAll()
    if (!this.#closed) this.#retry = setTimeout(() => this.#write(), RETRY_MS).unref()
  }
}
