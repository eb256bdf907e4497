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

export type SettlementSpool = Awaited<ReturnType<typeof openSettlementSpool>>

/**
 * Opens the spool in `dir`, which only one process may use, and reads the settlements in it: those that the store has not
 * accepted. Replaying one is harmless. Every write replaces the file, which is small: only calls in flight when the store
 * failed have a settlement in it. Throws if the directory cannot be created or read.
 */
export async function openSettlementSpool(
  dir: string,
  log: Log,
  { replaceFile: replace = replaceFile, bytesMax = SPOOL_BYTES_MAX }: SpoolOptions = {},
) {
  // Without syncing the parent, a crash might lose the new directory entry.
  if ((await mkdir(dir, { recursive: true, mode: 0o700 })) !== undefined) await syncDirectory(dirname(dir))
  const path = join(dir, FILE)
  const { left, isDamaged } = await readSpool(path)
  if (isDamaged) {
    const damagedFile = `${path}.${randomUUID()}.damaged`
    await rename(path, damagedFile)
    log.error({ damagedFile }, 'the settlement spool was damaged and has been renamed')
  }
  /** All settlements that the store does not have, on disk or not, oldest first. */
  const waiting = new Map<string, Spooled>()
  let waitingBytes = 0
  /** Whether a waiting settlement is not in the file. */
  let hasUnwritten = isDamaged
  /** Whether the file has settlements that the database has too. Replaying them is harmless. */
  let hasStale = false
  let writing: Promise<void> | null = null
  /** Whether the last write failed, or takes so long that answers no longer wait for it. */
  let isFailing = false
  const closed = new AbortController()

  async function finish(): Promise<void> {
    await writing
    write()
    await writing
  }

  function add(closing: CallClosing): Spooled {
    const spooled: Spooled = { closing, line: toLine(closing), stored: Promise.withResolvers() }
    waiting.set(closing.requestId, spooled)
    waitingBytes += spooled.line.length
    return spooled
  }

  function write(): void {
    if (writing === null && isBehind()) writing = writeAll()
  }

  function isBehind(): boolean {
    return hasUnwritten || (hasStale && (waiting.size === 0 || closed.signal.aborted))
  }

  /** A failed write is retried later, with everything that waits by then. */
  async function writeAll(): Promise<void> {
    while (isBehind()) {
      const timeout = setTimeout(
        () => fail({}, 'the disk of the settlement spool does not answer'),
        SPOOL_WRITE_MS,
      )
      try {
        await writeOnce()
        if (isFailing) log.info({ settlements: waiting.size }, 'the settlement spool works again')
        isFailing = false
      } catch (error) {
        hasUnwritten = true
        fail(
          { cause: (error as Error).message },
          'the settlement spool cannot be written; no new call is admitted while settlements wait',
        )
        if (closed.signal.aborted) break
        await sleep(RETRY_MS, undefined, { ref: false, signal: closed.signal }).catch(() => {})
      } finally {
        clearTimeout(timeout)
      }
    }
    // In the same turn as the last check of `isBehind`, or a settlement in between would not be written.
    writing = null
  }

  async function writeOnce(): Promise<void> {
    const written = [...waiting.values()]
    hasUnwritten = false
    hasStale = false
    await replace(path, written.map(({ line }) => line).join(''))
    for (const { stored } of written) stored.resolve()
  }

  function fail(about: object, message: string): void {
    if (!isFailing) log.error({ settlements: waiting.size, ...about }, message)
    isFailing = true
    for (const { stored } of waiting.values()) stored.resolve()
  }

  /** Removes a settlement that the database has received. Does nothing if it is not in the spool. */
  function remove(requestId: string): void {
    const spooled = waiting.get(requestId)
    if (spooled === undefined) return
    waiting.delete(requestId)
    waitingBytes -= spooled.line.length
    hasStale = true
    spooled.stored.resolve()
    if (!closed.signal.aborted) write()
  }

  for (const closing of left) add(closing).stored.resolve()
  return {
    get waiting(): number {
      return waiting.size
    },
    /** False while too many settlements wait, or some of them are not on disk. */
    get isDurable(): boolean {
      const isFull = waitingBytes > bytesMax
      return waiting.size === 0 || !(isFailing || isFull)
    },
    /** The waiting settlements, oldest first. After a start, these are the settlements that an earlier process left. */
    pending(): readonly CallClosing[] {
      return [...waiting.values()].map(({ closing }) => closing)
    },
    /** Never rejects. If the disk fails or is slow, `isDurable` is false until all waiting settlements are stored. */
    async append(closing: CallClosing): Promise<void> {
      const earlier = waiting.get(closing.requestId)
      // The first closing of a call counts; later ones are ignored.
      if (earlier !== undefined) return await earlier.stored.promise
      if (closed.signal.aborted) {
        log.error({ request: closing.requestId }, 'a settlement came after the spool was closed')
        return
      }
      const spooled = add(closing)
      hasUnwritten = true
      if (isFailing) return
      write()
      await spooled.stored.promise
    },
    remove,
    /** Writes a settlement that the database has refused to a separate file for the operator. */
    async refuse(closing: CallClosing, reason: string): Promise<void> {
      const { requestId } = closing
      const file = join(dir, REFUSED_FILE)
      const line = `${JSON.stringify({ refused: reason, kept: amountsAsText(closing) })}\n`
      try {
        const { size } = await stat(file).catch(() => ({ size: 0 }))
        if (size + line.length > bytesMax) throw new Error(`${REFUSED_FILE} is full`)
        await appendFile(file, line, { mode: 0o600, flush: true })
        remove(requestId)
      } catch (error) {
        // A refused settlement that was spooled stays in the spool, and the next start tries again.
        log.error(
          { request: requestId, cause: (error as Error).message },
          'a refused settlement cannot be written to its file',
        )
      }
    },
    async close(): Promise<void> {
      closed.abort()
      // A disk that does not answer must not prevent the process from exiting.
      await Promise.race([finish(), sleep(SPOOL_WRITE_MS, undefined, { ref: false })])
    },
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
