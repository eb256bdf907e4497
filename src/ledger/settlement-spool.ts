import { existsSync } from 'node:fs'
import { appendFile, mkdir, open, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import type { Log } from '../kernel/log.ts'
import type { CallClosing } from './call.ts'
import { CALL_COLUMNS, CLOSING_AMOUNTS, CLOSING_NAMES } from './call-columns.ts'

/** Maximum size of the spool. Beyond it settlements wait only in memory, and no new call is admitted. */
const SPOOL_BYTES_MAX = 64 * 1024 ** 2

/** How long an answer waits for the spool's disk. It is then sent, and no new call is admitted until the disk responds. */
export const SPOOL_WRITE_MS = 5_000

/**
 * Settlements that the store cannot accept now, on the local disk, so that they survive the process. Replaying one that
 * the store already has is harmless: the store closes a hold once. Only one process may use a spool.
 */
export interface SettlementSpool {
  /**
   * Resolves when the settlement is on disk. Never rejects: if the disk fails or takes too long, it resolves too, the
   * log says why, and `isSound` is false until every waiting settlement is on disk or in the store.
   */
  append(closing: CallClosing): Promise<void>
  /** The store has the settlement. Does nothing if it is not in the spool. */
  done(requestId: string): void
  /** The store refused the settlement for good. Writes it to a separate file for the operator, whether it was spooled or not. */
  refuse(closing: CallClosing, reason: string): Promise<void>
  /** The waiting settlements, oldest first. After a start, those that an earlier process left. */
  left(): readonly CallClosing[]
  readonly waiting: number
  /** False while settlements wait only in memory, or for a disk that does not respond. */
  readonly isSound: boolean
  close(): Promise<void>
}

const FILE = 'settlements.jsonl'
const REFUSED_FILE = 'refused.jsonl'

const RETRY_MS = 1_000

export interface SpoolOptions {
  openFile(path: string): SpoolFile
  readonly bytesMax: number
}

/** The spool's file, with one line per settlement. A change is on disk once it resolves. One change at a time. */
export interface SpoolFile {
  append(lines: string): Promise<void>
  /** Replaces the whole content of the file. */
  replace(lines: string): Promise<void>
}

/** Opens the spool in `dir` and reads the settlements in it. Throws if the directory cannot be created or read. */
export async function openSettlementSpool(
  dir: string,
  log: Log,
  { openFile = openSpoolFile, bytesMax = SPOOL_BYTES_MAX }: Partial<SpoolOptions> = {},
): Promise<SettlementSpool> {
  // Without syncing the parent, a crash might lose the new directory entry.
  if ((await mkdir(dir, { recursive: true, mode: 0o700 })) !== undefined) await syncDirectory(dirname(dir))
  const path = join(dir, FILE)
  const { left, state, bytes } = await readSpool(path)
  if (state === 'damaged') {
    let damagedFile = `${path}.1.damaged`
    for (let i = 2; existsSync(damagedFile); i++) damagedFile = `${path}.${i}.damaged`
    await rename(path, damagedFile)
    log.error({ damagedFile }, 'the settlement spool was damaged and has been renamed')
  }
  return new Spool({ dir, log, bytesMax, file: openFile(path) }, left, { bytes, isStale: state !== 'whole' })
}

export function openSpoolFile(path: string): SpoolFile {
  return {
    append: (lines) => appendFile(path, lines, { mode: 0o600, flush: true }),
    async replace(lines) {
      await writeFile(`${path}.new`, lines, { mode: 0o600, flush: true })
      await rename(`${path}.new`, path)
      await syncDirectory(dirname(path))
    },
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path)
  await directory.sync().finally(() => directory.close())
}

function amountsAsText(closing: CallClosing): Readonly<Record<string, unknown>> {
  return { ...closing, ...Object.fromEntries(CLOSING_AMOUNTS.map((name) => [name, String(closing[name])])) }
}

/** The checksum detects corruption that would still parse as valid figures. */
function toLine(closing: CallClosing): string {
  const json = JSON.stringify(amountsAsText(closing))
  return `${crc32(json)} ${json}\n`
}

/** Null if the line is damaged or lacks a required member. An older version may have omitted a nullable one. */
function readLine(line: string): CallClosing | null {
  const json = line.slice(line.indexOf(' ') + 1)
  if (`${crc32(json)}` !== line.slice(0, line.indexOf(' '))) return null
  const written = { ...JSON.parse(json) } as Record<string, unknown>
  for (const name of NULLABLE) written[name] ??= null
  if (!MEMBERS.every((name) => Object.hasOwn(written, name))) return null
  for (const name of CLOSING_AMOUNTS) written[name] = BigInt(String(written[name]))
  return written as unknown as CallClosing
}

const MEMBERS: readonly (keyof CallClosing)[] = ['requestId', 'state', 'atMs', 'tokens', ...CLOSING_NAMES]
const NULLABLE = CLOSING_NAMES.filter((name) => CALL_COLUMNS[name].kind.endsWith('?'))

/** `torn`: the process ended during a write on which nothing relied yet. */
export async function readSpool(path: string) {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  const lines = text.split('\n')
  const isTorn = lines.pop() !== ''
  const left = new Map<string, CallClosing>()
  let isDamaged = false
  for (const line of lines) {
    const closing = readLine(line)
    if (closing === null) isDamaged = true
    else if (!left.has(closing.requestId)) left.set(closing.requestId, closing)
  }
  const state: 'whole' | 'torn' | 'damaged' = isDamaged ? 'damaged' : isTorn ? 'torn' : 'whole'
  return { left: [...left.values()], state, bytes: text.length }
}

interface SpoolParts extends Omit<SpoolOptions, 'openFile'> {
  readonly dir: string
  readonly log: Log
  readonly file: SpoolFile
}

interface Spooled {
  readonly closing: CallClosing
  readonly line: string
  /** Resolved when the settlement is on disk, or need not be waited for. */
  readonly stored: PromiseWithResolvers<void>
}

class Spool implements SettlementSpool {
  readonly #parts: SpoolParts
  /** All settlements that the store does not have, on disk or not, oldest first. */
  readonly #waiting = new Map<string, Spooled>()
  #waitingBytes = 0
  #come: Spooled[] = []
  /** The length of the file. Stale: it may have partial or missing lines. */
  #fileBytes: number
  #isStale: boolean
  #writing: Promise<void> | null = null
  #failed = false
  /** A write takes so long that answers no longer wait for it. */
  #stuck = false
  /** There was no room for a settlement, and the spool is still more than half full. */
  #full = false
  /** Settlements that did not fit: only the settler's memory has them. */
  readonly #unkept = new Set<string>()
  #retry: NodeJS.Timeout | undefined
  #closed = false

  constructor(
    parts: SpoolParts,
    left: readonly CallClosing[],
    found: { readonly bytes: number; readonly isStale: boolean },
  ) {
    this.#parts = parts
    this.#fileBytes = found.bytes
    this.#isStale = found.isStale
    for (const closing of left) this.#add(closing, toLine(closing)).stored.resolve()
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

  async append(closing: CallClosing): Promise<void> {
    const before = this.#waiting.get(closing.requestId)
    // The first closing of a call counts; later ones are ignored.
    if (before !== undefined) return await before.stored.promise
    if (this.#closed) {
      this.#parts.log.error({ request: closing.requestId }, 'a settlement came after the spool was closed')
      return
    }
    const line = toLine(closing)
    if (this.#waitingBytes + line.length > this.#parts.bytesMax) {
      if (!this.#full) this.#parts.log.error({ settlements: this.waiting }, 'the settlement spool is full')
      this.#full = true
      this.#unkept.add(closing.requestId)
      return
    }
    const spooled = this.#add(closing, line)
    this.#come.push(spooled)
    if (this.#failed || this.#stuck) spooled.stored.resolve()
    // A failed disk is retried later, with everything that waits by then.
    if (!this.#failed) this.#write()
    await spooled.stored.promise
  }

  done(requestId: string): void {
    this.#unkept.delete(requestId)
    const spooled = this.#waiting.get(requestId)
    if (spooled === undefined) return
    this.#waiting.delete(requestId)
    this.#waitingBytes -= spooled.line.length
    if (this.#waitingBytes <= this.#parts.bytesMax / 2) this.#full = false
    spooled.stored.resolve()
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
      // A refused settlement that was spooled stays in the spool, and the next start tries again.
      const cause = (error as Error).message
      this.#parts.log.error(
        { request: requestId, cause },
        'a refused settlement cannot be written to its file',
      )
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#retry)
    // A disk that does not answer must not prevent the process from exiting.
    await Promise.race([this.#finish(), sleep(SPOOL_WRITE_MS, undefined, { ref: false })])
  }

  async #finish(): Promise<void> {
    await this.#writing
    // The next process need not replay what the store already has.
    if (this.#fileBytes !== this.#waitingBytes) this.#isStale = true
    this.#write()
    await this.#writing
    // The last write may have failed just now, and no timer retries it after the close.
    if (this.#failed) this.#write()
    await this.#writing
  }

  #add(closing: CallClosing, line: string): Spooled {
    const spooled: Spooled = { closing, line, stored: Promise.withResolvers() }
    this.#waiting.set(closing.requestId, spooled)
    this.#waitingBytes += line.length
    return spooled
  }

  /** One write at a time. Settlements that arrive meanwhile share the next write. */
  #write(): void {
    if (this.#writing === null && this.#isBehind()) this.#writing = this.#writeAll()
  }

  #isBehind(): boolean {
    return this.#come.length > 0 || this.#isWorthReplacing
  }

  /** Settlements that the store already has stay in the file until none waits or most of the file is theirs. */
  get #isWorthReplacing(): boolean {
    if (this.#isStale || this.#waiting.size === 0) return this.#isStale || this.#fileBytes > 0
    return this.#fileBytes > Math.max(this.#parts.bytesMax / 4, this.#waitingBytes * 2)
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
      // Clear it in the same turn as the last check of `#isBehind`, or a settlement that arrives in between would not
      // be written.
      this.#writing = null
    }
  }

  async #waitAtMost(write: Promise<void>): Promise<void> {
    const timer = setTimeout(() => {
      this.#stuck = true
      this.#parts.log.error({ settlements: this.waiting }, 'the disk of the settlement spool does not answer')
      this.#releaseAll()
    }, SPOOL_WRITE_MS)
    await write.finally(() => {
      clearTimeout(timer)
      this.#stuck = false
    })
  }

  #releaseAll(): void {
    for (const { stored } of this.#waiting.values()) stored.resolve()
  }

  async #writeOnce(): Promise<void> {
    const { file } = this.#parts
    // The first line also needs a durable directory entry.
    const isReplaced = this.#isWorthReplacing || this.#fileBytes === 0
    // Settlements that the store has meanwhile need no line.
    const come = this.#come.filter((spooled) => this.#waiting.get(spooled.closing.requestId) === spooled)
    const written = isReplaced ? [...this.#waiting.values()] : come
    const lines = written.map(({ line }) => line).join('')
    this.#come = []
    if (isReplaced) await file.replace(lines)
    else if (lines !== '') await file.append(lines)
    this.#fileBytes = lines.length + (isReplaced ? 0 : this.#fileBytes)
    if (isReplaced) this.#isStale = false
    for (const { stored } of written) stored.resolve()
  }

  /** After a failed fsync the file's content is unknown: write every waiting settlement again. */
  #fail(error: Error): void {
    if (!this.#failed) {
      this.#parts.log.error(
        { settlements: this.waiting, cause: error.message },
        'the settlement spool cannot be written; no new call is admitted while settlements wait',
      )
    }
    this.#failed = true
    this.#isStale = true
    this.#releaseAll()
    if (!this.#closed) this.#retry = setTimeout(() => this.#write(), RETRY_MS).unref()
  }
}
