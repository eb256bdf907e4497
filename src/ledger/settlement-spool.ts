import { setTimeout as sleep } from 'node:timers/promises'
import { limits } from '../kernel/limits.ts'
import type { Log } from '../kernel/log.ts'
import type { CallClosing } from './call.ts'
import { readSpool } from './read-spool.ts'
import { openSpoolDisk, type SpoolDisk, type SpoolFile } from './spool-disk.ts'
import { doneLine, keptLine, refusedLine } from './spool-line.ts'

/**
 * Settlements that the store cannot take now, on the local disk, so that they outlive the process. What is replayed
 * although the store had taken it does no harm: the store closes a hold once. Only one process may use a spool.
 */
export interface SettlementSpool {
  /**
   * Resolves when it is on the disk. It never fails: if the disk does, or takes too long, it resolves too, the log
   * says why, and `isSound` is false until all that waits is on the disk or taken.
   */
  keep(closing: CallClosing): Promise<void>
  /** The store has it. A mark that a crash loses is one more replay. Does nothing if it was not kept. */
  done(requestId: string): void
  /** The store will never take it: it is put into a file of its own, for a person. Does nothing if it was not kept. */
  refuse(requestId: string, reason: string): Promise<void>
  /** What waits, oldest first: after the start, what an earlier life has left. */
  left(): readonly CallClosing[]
  readonly waiting: number
  /** False while settlements wait in memory alone, or for a disk that does not answer. */
  readonly isSound: boolean
  close(): Promise<void>
}

const FILE = 'settlements.log'
const REFUSED_FILE = 'refused.jsonl'

/** How soon a disk that failed is tried again. */
const RETRY_MS = 1_000

export interface SpoolOptions {
  /** For tests of what a failing disk does. */
  openDisk(dir: string): Promise<SpoolDisk>
  readonly bytesMax: number
  /** There is no room on the disk. It is tried again in a while. */
  onFull(): void
}

/** Opens the spool in `dir` and reads what is left there. Throws if the directory cannot be made or read. */
export async function openSettlementSpool(
  dir: string,
  log: Log,
  {
    openDisk = openSpoolDisk,
    bytesMax = limits.spoolBytesMax,
    onFull = () => {},
  }: Partial<SpoolOptions> = {},
): Promise<SettlementSpool> {
  const disk = await openDisk(dir)
  const bytes = (await disk.read(FILE)) ?? Buffer.alloc(0)
  const { left, torn, damagedLines } = readSpool(bytes)
  if (torn) log.warn({ dir }, 'the last line of the settlement spool was cut off while it was written')
  if (damagedLines > 0) log.error({ dir, lines: damagedLines }, 'the settlement spool is damaged')
  const spool = new Spool({ disk, log, bytesMax, onFull }, left, bytes.length, damagedLines > 0)
  await spool.begin()
  return spool
}

interface SpoolParts {
  readonly disk: SpoolDisk
  readonly log: Log
  readonly bytesMax: number
  onFull(): void
}

interface Kept {
  readonly closing: CallClosing
  readonly line: Buffer
  /** It is in the file or on its way there, and needs a mark when it is done. */
  written: boolean
  /** On the disk, or not to be waited for. */
  readonly told: PromiseWithResolvers<void>
}

class Spool implements SettlementSpool {
  readonly #parts: SpoolParts
  /** All that the store has not taken, on the disk or not, oldest first. */
  readonly #waiting = new Map<string, Kept>()
  #waitingBytes = 0
  #queued: Kept[] = []
  #marks: Buffer[] = []
  /** Null when the file has to be written anew: at first, and after a failure, when nobody knows what is in it. */
  #file: SpoolFile | null = null
  #fileBytes: number
  /** What is in the file has to be put aside before another takes its place. */
  #damaged: boolean
  #writing: Promise<void> | null = null
  #failed = false
  /** A write takes so long that nobody waits for it any more. */
  #stuck = false
  /** Settlements that there was no room for wait in memory alone. */
  #full = false
  #retry: NodeJS.Timeout | null = null
  #closed = false

  constructor(parts: SpoolParts, left: readonly CallClosing[], fileBytes: number, damaged: boolean) {
    this.#parts = parts
    this.#fileBytes = fileBytes
    this.#damaged = damaged
    for (const closing of left) this.#add(closing, keptLine(closing))
  }

  get waiting(): number {
    return this.#waiting.size
  }

  get isSound(): boolean {
    return this.#waiting.size === 0 || !(this.#failed || this.#stuck || this.#full)
  }

  left(): readonly CallClosing[] {
    return [...this.#waiting.values()].map(({ closing }) => closing)
  }

  async keep(closing: CallClosing): Promise<void> {
    const before = this.#waiting.get(closing.requestId)
    // Of closings of the same call the first counts.
    if (before !== undefined) return await before.told.promise
    if (this.#closed) {
      this.#parts.log.error({ request: closing.requestId }, 'a settlement came after the spool was closed')
      return
    }
    const line = keptLine(closing)
    if (this.#waitingBytes + line.length > this.#parts.bytesMax) {
      if (!this.#full) this.#parts.log.error({ settlements: this.waiting }, 'the settlement spool is full')
      this.#full = true
      return
    }
    const kept = this.#add(closing, line)
    this.#queued.push(kept)
    if (this.#failed || this.#stuck) kept.told.resolve()
    // A disk that has failed is tried again in a while, with everything that waits by then.
    if (!this.#failed) this.#write()
    await kept.told.promise
  }

  done(requestId: string): void {
    const kept = this.#waiting.get(requestId)
    if (kept === undefined) return
    this.#waiting.delete(requestId)
    this.#waitingBytes -= kept.line.length
    if (this.#waitingBytes <= this.#parts.bytesMax / 2) this.#full = false
    kept.told.resolve()
    if (kept.written) this.#marks.push(doneLine(requestId))
    if (!this.#failed && !this.#closed) this.#write()
  }

  async refuse(requestId: string, reason: string): Promise<void> {
    const kept = this.#waiting.get(requestId)
    if (kept === undefined) return
    try {
      const line = refusedLine(kept.closing, reason)
      const fits = await this.#parts.disk.append(REFUSED_FILE, line, this.#parts.bytesMax)
      if (!fits) throw new Error(`${REFUSED_FILE} is full`)
      this.done(requestId)
    } catch (error) {
      // It stays where it is, and the next start tries again.
      const cause = (error as Error).message
      this.#parts.log.error({ request: requestId, cause }, 'a refused settlement cannot be put aside')
    }
  }

  /** Brings the file of an earlier life into order. */
  async begin(): Promise<void> {
    this.#write()
    await this.#writing
  }

  async close(): Promise<void> {
    this.#closed = true
    if (this.#retry !== null) clearTimeout(this.#retry)
    // A disk that does not answer must not keep the process from ending.
    await Promise.race([this.#finish(), sleep(limits.spoolWriteMs, undefined, { ref: false })])
  }

  async #finish(): Promise<void> {
    this.#write()
    await this.#writing
    // What was under way may have failed just now, and nobody will come back to it.
    if (this.#failed) this.#write()
    await this.#writing
    await this.#file?.close().catch(() => {})
  }

  #add(closing: CallClosing, line: Buffer): Kept {
    const kept: Kept = { closing, line, written: false, told: Promise.withResolvers() }
    this.#waiting.set(closing.requestId, kept)
    this.#waitingBytes += line.length
    return kept
  }

  /** One write at a time. What comes meanwhile goes together with the next one. */
  #write(): void {
    if (this.#writing === null && this.#isBehind()) this.#writing = this.#writeAll()
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
      // In the same turn as the last look at what is behind, or what comes in between would find nobody to write it.
      this.#writing = null
    }
  }

  async #waitAtMost(write: Promise<void>): Promise<void> {
    const timer = setTimeout(() => {
      this.#stuck = true
      this.#parts.log.error({ settlements: this.waiting }, 'the disk of the settlement spool does not answer')
      this.#tellAll()
    }, limits.spoolWriteMs)
    await write.finally(() => {
      clearTimeout(timer)
      this.#stuck = false
    })
  }

  #tellAll(): void {
    for (const { told } of this.#waiting.values()) told.resolve()
  }

  /** Whether the file is not as it should be. */
  #isBehind(): boolean {
    if (this.#waiting.size === 0) return this.#fileBytes > 0
    return this.#file === null || this.#queued.length > 0 || this.#marks.length > 0
  }

  async #writeOnce(): Promise<void> {
    const takenBytes = this.#fileBytes - this.#waitingBytes
    if (this.#file === null || takenBytes > this.#parts.bytesMax) await this.#writeAnew()
    else if (this.#waiting.size === 0) await this.#clear(this.#file)
    else await this.#append(this.#file)
  }

  async #append(file: SpoolFile): Promise<void> {
    const marks = this.#marks
    // What the store has taken meanwhile needs no line.
    const queued = this.#queued.filter((kept) => this.#waiting.get(kept.closing.requestId) === kept)
    this.#marks = []
    this.#queued = []
    for (const kept of queued) kept.written = true
    const bytes = Buffer.concat([...marks, ...queued.map(({ line }) => line)])
    await file.append(bytes)
    this.#fileBytes += bytes.length
    if (queued.length > 0) await file.sync()
    for (const { told } of queued) told.resolve()
  }

  async #clear(file: SpoolFile): Promise<void> {
    this.#marks = []
    this.#queued = []
    await file.clear()
    this.#fileBytes = 0
  }

  async #writeAnew(): Promise<void> {
    if (this.#damaged) {
      const file = await this.#parts.disk.copyAside(FILE)
      this.#parts.log.error({ file }, 'the damaged settlement spool was kept aside')
      this.#damaged = false
    }
    const former = this.#file
    this.#file = null
    await former?.close()
    const all = [...this.#waiting.values()]
    const bytes = this.#waitingBytes
    this.#marks = []
    this.#queued = []
    for (const kept of all) kept.written = true
    this.#file = await this.#parts.disk.replace(
      FILE,
      all.map(({ line }) => line),
    )
    this.#fileBytes = bytes
    for (const { told } of all) told.resolve()
  }

  /** After a failed fsync nobody knows what is on the disk: all that waits is written again, to another file. */
  #fail(error: Error): void {
    if (!this.#failed) {
      this.#parts.log.error(
        { settlements: this.waiting, cause: error.message },
        'the settlement spool cannot be written; no new call is admitted while settlements wait',
      )
    }
    this.#failed = true
    if ('code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT')) this.#parts.onFull()
    this.#file?.close().catch(() => {})
    this.#file = null
    // Something may be in it.
    this.#fileBytes = Math.max(1, this.#fileBytes)
    this.#marks = []
    this.#queued = []
    this.#tellAll()
    if (!this.#closed) this.#retry = setTimeout(() => this.#write(), RETRY_MS).unref()
  }
}
