import { constants } from 'node:fs'
import { copyFile, type FileHandle, mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** The files of a spool. What has resolved is on the disk, except where it says otherwise. */
export interface SpoolDisk {
  /** Null if there is no such file. */
  read(name: string): Promise<Buffer | null>
  /** Puts another file in its place, whole or not at all, to be appended to from then on. */
  replace(name: string, lines: readonly Buffer[]): Promise<SpoolFile>
  /** False, and nothing is written, if the file would be longer than `bytesMax`. */
  append(name: string, line: Buffer, bytesMax: number): Promise<boolean>
  /** Copies a file to a name that is not taken yet, and says which. */
  copyAside(name: string): Promise<string>
}

export interface SpoolFile {
  /** Is on the disk after the next `sync`. */
  append(bytes: Buffer): Promise<void>
  sync(): Promise<void>
  /** Empties it. A crash may bring back what was in it. */
  clear(): Promise<void>
  close(): Promise<void>
}

/** Lines that are joined for one write. */
const LINES_AT_ONCE = 1_000

/** Copies of damaged files that are put aside until somebody looks at them. Beyond it: an error. */
const ASIDE_MAX = 100

export async function openSpoolDisk(dir: string): Promise<SpoolDisk> {
  await mkdir(dir, { recursive: true, mode: 0o700 })
  await syncDir(dirname(dir))

  return {
    async read(name) {
      try {
        return await readFile(join(dir, name))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
        throw error
      }
    },

    async replace(name, lines) {
      const path = join(dir, name)
      const next = `${path}.new`
      await rm(next, { force: true })
      // Appending, because after a clear the position of a handle would leave a hole.
      const handle = await open(next, 'ax', 0o600)
      try {
        for (let i = 0; i < lines.length; i += LINES_AT_ONCE) {
          await handle.appendFile(Buffer.concat(lines.slice(i, i + LINES_AT_ONCE)))
        }
        await handle.datasync()
        await rename(next, path)
        await syncDir(dir)
      } catch (error) {
        await handle.close().catch(() => {})
        throw error
      }
      return spoolFile(handle)
    },

    async append(name, line, bytesMax) {
      const handle = await open(join(dir, name), 'a', 0o600)
      try {
        const { size } = await handle.stat()
        if (size + line.length > bytesMax) return false
        await handle.appendFile(line)
        await handle.datasync()
        if (size === 0) await syncDir(dir)
        return true
      } finally {
        await handle.close()
      }
    },

    async copyAside(name) {
      for (let i = 1; i <= ASIDE_MAX; i++) {
        const aside = `${name}.${i}.damaged`
        try {
          await copyFile(join(dir, name), join(dir, aside), constants.COPYFILE_EXCL)
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code === 'EEXIST') continue
          // Half a copy would be taken for one.
          await rm(join(dir, aside), { force: true })
          throw error
        }
        const handle = await open(join(dir, aside), 'r+')
        await handle.sync().finally(() => handle.close())
        await syncDir(dir)
        return aside
      }
      throw new Error(
        `there are ${ASIDE_MAX} damaged spools in ${dir} already; look at them and move them away`,
      )
    },
  }
}

function spoolFile(handle: FileHandle): SpoolFile {
  return {
    append: (bytes) => handle.appendFile(bytes),
    sync: () => handle.datasync(),
    clear: () => handle.truncate(0),
    close: () => handle.close(),
  }
}

/** Or a crash might leave a file without its name. */
async function syncDir(dir: string): Promise<void> {
  const handle = await open(dir, 'r')
  await handle.sync().finally(() => handle.close())
}
