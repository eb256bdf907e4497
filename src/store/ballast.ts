import { randomBytes } from 'node:crypto'
import { open, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { limits } from '../kernel/limits.ts'
import type { Log } from '../kernel/log.ts'

/** The disk of the data directory, as far as its writers have found out. */
export interface Disk {
  /** No new call may begin: the room that is left belongs to calls in flight. */
  readonly isFull: boolean
  /** A write has failed for want of room. */
  wasFull(): void
}

/**
 * The ballast is a file of random bytes that reserves room on the disk. When the disk is full the file is deleted, no new
 * call is admitted, and calls in flight are settled in the room that it leaves. It is written again when there is room.
 */
export class Ballast implements Disk {
  readonly #dir: string
  readonly #file: string
  readonly #log: Pick<Log, 'info' | 'warn' | 'error'>
  readonly #bytes: number
  #timer: NodeJS.Timeout | null = null
  #making: Promise<void> | null = null
  #isFull = false
  #timesGiven = 0
  #isClosed = false
  /** A failure to write the ballast is logged once, and not at each retry. */
  #hasWarned = false

  constructor(
    dataDir: string,
    log: Pick<Log, 'info' | 'warn' | 'error'>,
    bytes: number = limits.ballastBytes,
  ) {
    this.#dir = dataDir
    this.#file = join(dataDir, 'ballast')
    this.#log = log
    this.#bytes = bytes
  }

  get isFull(): boolean {
    return this.#isFull
  }

  /** Writes the ballast soon, and again whenever it was given back. */
  start(): void {
    this.#tryIn(limits.ballastFirstMs)
  }

  wasFull(): void {
    if (this.#isFull || this.#isClosed) return
    this.#isFull = true
    this.#timesGiven += 1
    this.#log.error(
      { directory: this.#dir },
      'the disk is full: nothing is admitted until there is room again',
    )
    void this.#delete()
    this.#tryIn(limits.ballastEveryMs)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    await this.#making
  }

  #tryIn(ms: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = this.#isClosed ? null : setTimeout(this.#try, ms).unref()
  }

  readonly #try = (): void => {
    this.#making ??= this.#make().finally(() => {
      this.#making = null
    })
  }

  async #make(): Promise<void> {
    const given = this.#timesGiven
    try {
      if (this.#isFull) await this.#delete()
      const isThere = await this.#isThere()
      // A ballast that could not be deleted says nothing about the room beside it.
      if ((this.#isFull || !isThere) && !(await this.#hasRoom())) throw new Error('there is no room for it')
      if (!isThere) await this.#write()
      if (!(await this.#isThere()) || this.#timesGiven !== given) {
        throw new Error('it was given back while it was written')
      }
    } catch (error) {
      const cause = (error as Error).message
      if (!this.#hasWarned) this.#log.warn({ file: this.#file, cause }, 'the ballast cannot be written yet')
      this.#hasWarned = true
      this.#tryIn(limits.ballastEveryMs)
      return
    }
    this.#hasWarned = false
    if (this.#isFull) this.#log.info({ directory: this.#dir }, 'there is room on the disk again')
    this.#isFull = false
  }

  /** Never rejects: a deletion that fails is tried again before the ballast is written. */
  async #delete(): Promise<void> {
    await rm(this.#file, { force: true }).catch(() => {})
  }

  async #isThere(): Promise<boolean> {
    const found = await stat(this.#file).catch(() => null)
    return found?.size === this.#bytes
  }

  /** Room for twice the ballast is required, or the next write would find the disk full because of the ballast. */
  async #hasRoom(): Promise<boolean> {
    const { bavail, bsize } = await statfs(this.#dir)
    return bavail * bsize >= 2 * this.#bytes
  }

  async #write(): Promise<void> {
    // The bytes are random: some file systems store zeros without taking room for them.
    const block = randomBytes(Math.min(this.#bytes, 1024 * 1024))
    const file = await open(this.#file, 'w', 0o600)
    try {
      for (let left = this.#bytes; left > 0 && !this.#isClosed; left -= block.length) {
        await file.writeFile(block.subarray(0, Math.min(left, block.length)))
      }
      await file.datasync()
    } catch (error) {
      await this.#delete()
      throw error
    } finally {
      await file.close()
    }
  }
}
