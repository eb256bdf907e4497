import { randomUUID } from 'node:crypto'
import { appendFile, mkdir, open, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import type { Log } from '../kernel/log.ts'
import type { CallClosing } from './call.ts'
import { CLOSING_AMOUNTS, NOTHING_USED } from './call-columns.ts'

/** Maximum size of waiting settlements. Beyond it, no new call is admitted. */
const SPOOL_BYTES_MAX = 64 * 1024 ** 2

/** How long an answer waits for the spool's disk. Then no call is admitted until the disk responds. */
export const SPOOL_WRITE_MS = 5_000

const FILE = 'settlements.jsonl'
const REFUSED_FILE = 'refused.jsonl'

const RETRY_MS = 1_000

interface SpoolOptions {
  readonly replaceFile?: typeof replaceFile
  readonly bytesMax?: number
}

interface Spooled {
  readonly closing: CallClosing
  readonly line: string
  /** Resolves when the settlement is on disk, or when callers need not wait for it. */
  readonly stored: PromiseWithResolvers<void>
}

/**
 * Opens the spool in `dir`, which only one process may use, and reads the settlements in it. Throws if the directory cannot
 * be created or read.
 */
export async function openSettlementSpool(
  dir: string,
  log: Log,
  options: SpoolOptions = {},
): Promise<SettlementSpool> {
  // Without syncing the parent, a crash might lose the new directory entry.
  if ((await mkdir(dir, { recursive: true, mode: 0o700 })) !== undefined) await syncDirectory(dirname(dir))
  const path = join(dir, FILE)
  const read = await readSpool(path)
  if (read.isDamaged) {
    const damagedFile = `${path}.${randomUUID()}.damaged`
    await rename(path, damagedFile)
    log.error({ damagedFile }, 'the settlement spool was damaged and has been renamed')
  }
  return new SettlementSpool(dir, log, options, read)
}

/**
 * A file of the settlements that the store has not accepted. Replaying one is harmless. Every write replaces the file, which
 * is small: only calls in flight when the store failed have a settlement in it.
 */
export class SettlementSpool {
  readonly #dir: string
  readonly #log: Log
  readonly #replace: typeof replaceFile
  readonly #bytesMax: number
  /** All settlements that the store does not have, on disk or not, oldest first. */
  readonly #waiting = new Map<string, Spooled>()
  #waitingBytes = 0
  /** Whether a waiting settlement is not in the file. */
  #hasUnwritten: boolean
  /** Whether the file has settlements that the database has too. */
  #hasStale = false
  #writing: Promise<void> | null = null
  /** Whether the last write failed, or takes so long that answers no longer wait for it. */
  #isFailing = false
  readonly #closed = new AbortController()

  constructor(dir: string, log: Log, options: SpoolOptions, read: Awaited<ReturnType<typeof readSpool>>) {
    this.#dir = dir
    this.#log = log
    this.#replace = options.replaceFile ?? replaceFile
    this.#bytesMax = options.bytesMax ?? SPOOL_BYTES_MAX
    this.#hasUnwritten = read.isDamaged
    for (const closing of read.left) this.#add(closing).stored.resolve()
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** False while too many settlements wait, or some of them are not on disk. */
  get isDurable(): boolean {
    const isFull = this.#waitingBytes > this.#bytesMax
    return this.#waiting.size === 0 || !(this.#isFailing || isFull)
  }

  /** The waiting settlements, oldest first. After a start, these are the settlements that an earlier process left. */
  pending(): readonly CallClosing[] {
    return [...this.#waiting.values()].map(({ closing }) => closing)
  }

  /** Never rejects. If the disk fails or is slow, `isDurable` is false until all waiting settlements are stored. */
  async append(closing: CallClosing): Promise<void> {
    const earlier = this.#waiting.get(closing.requestId)
    // The first closing of a call counts; later ones are ignored.
    if (earlier !== undefined) return await earlier.stored.promise
    if (this.#closed.signal.aborted) {
      this.#log.error({ request: closing.requestId }, 'a settlement came after the spool was closed')
      return
    }
    const spooled = this.#add(closing)
    this.#hasUnwritten = true
    if (this.#isFailing) return
    this.#write()
    await spooled.stored.promise
  }

  /** Removes a settlement that the database has received. Does nothing if it is not in the spool. */
  remove(requestId: string): void {
    const spooled = this.#waiting.get(requestId)
    if (spooled === undefined) return
    this.#waiting.delete(requestId)
    this.#waitingBytes -= spooled.line.length
    this.#hasStale = true
    spooled.stored.resolve()
    if (!this.#closed.signal.aborted) this.#write()
  }

  /** Writes a settlement that the database has refused to a separate file for the operator. */
  async refuse(closing: CallClosing, reason: string): Promise<void> {
    const { requestId } = closing
    const file = join(this.#dir, REFUSED_FILE)
    const line = `${JSON.stringify({ refused: reason, kept: amountsAsText(closing) })}\n`
    try {
      const { size } = await stat(file).catch(() => ({ size: 0 }))
      if (size + line.length > this.#bytesMax) throw new Error(`${REFUSED_FILE} is full`)
      await appendFile(file, line, { mode: 0o600, flush: true })
      this.remove(requestId)
    } catch (error) {
      // A refused settlement that was spooled stays in the spool, and the next start tries again.
      const about = { request: requestId, cause: (error as Error).message }
      this.#log.error(about, 'a refused settlement cannot be written to its file')
    }
  }

  async close(): Promise<void> {
    this.#closed.abort()
    // A disk that does not answer must not prevent the process from exiting.
    await Promise.race([this.#finish(), sleep(SPOOL_WRITE_MS, undefined, { ref: false })])
  }

  async #finish(): Promise<void> {
    await this.#writing
    this.#write()
    await this.#writing
  }

  #add(closing: CallClosing): Spooled {
    const spooled: Spooled = { closing, line: toLine(closing), stored: Promise.withResolvers() }
    this.#waiting.set(closing.requestId, spooled)
    this.#waitingBytes += spooled.line.length
    return spooled
  }

  #write(): void {
    if (this.#writing === null && this.#isBehind) this.#writing = this.#writeAll()
  }

  get #isBehind(): boolean {
    return this.#hasUnwritten || (this.#hasStale && (this.#waiting.size === 0 || this.#closed.signal.aborted))
  }

  /** A failed write is retried later, with everything that waits by then. */
  async #writeAll(): Promise<void> {
    const { signal } = this.#closed
    while (this.#isBehind) {
      const timeout = setTimeout(
        () => this.#fail({}, 'the disk of the settlement spool does not answer'),
        SPOOL_WRITE_MS,
      )
      try {
        await this.#writeOnce()
        if (this.#isFailing)
          this.#log.info({ settlements: this.#waiting.size }, 'the settlement spool works again')
        this.#isFailing = false
      } catch (error) {
        this.#hasUnwritten = true
        const message =
          'the settlement spool cannot be written; no new call is admitted while settlements wait'
        this.#fail({ cause: (error as Error).message }, message)
        if (signal.aborted) break
        await sleep(RETRY_MS, undefined, { ref: false, signal }).catch(() => {})
      } finally {
        clearTimeout(timeout)
      }
    }
    // In the same turn as the last check of `#isBehind`, or a settlement in between would not be written.
    this.#writing = null
  }

  async #writeOnce(): Promise<void> {
    const written = [...this.#waiting.values()]
    this.#hasUnwritten = false
    this.#hasStale = false
    await this.#replace(join(this.#dir, FILE), written.map(({ line }) => line).join(''))
    for (const { stored } of written) stored.resolve()
  }

  #fail(about: object, message: string): void {
    if (!this.#isFailing) this.#log.error({ settlements: this.#waiting.size, ...about }, message)
    this.#isFailing = true
    for (const { stored } of this.#waiting.values()) stored.resolve()
  }
}

/** Replaces the content of a file. It is on disk once this resolves, and the old content stays until then. */
export async function replaceFile(path: string, content: string): Promise<void> {
  await writeFile(`${path}.new`, content, { mode: 0o600, flush: true })
  await rename(`${path}.new`, path)
  await syncDirectory(dirname(path))
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

/** Reads a line of the spool; null if it is damaged. */
function readLine(line: string): CallClosing | null {
  const json = line.slice(line.indexOf(' ') + 1)
  if (`${crc32(json)}` !== line.slice(0, line.indexOf(' '))) return null
  // An older version with fewer columns may have written the line.
  const written: Record<string, unknown> = { ...NOTHING_USED, ...JSON.parse(json) }
  for (const name of CLOSING_AMOUNTS) written[name] = BigInt(String(written[name]))
  return written as unknown as CallClosing
}

export async function readSpool(path: string) {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  const closings = text
    .split('\n')
    .filter((line) => line !== '')
    .map(readLine)
  const left = closings.filter((closing) => closing !== null)
  return { left, isDamaged: left.length < closings.length }
}
