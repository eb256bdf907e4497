import { mkdirSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Processes and folders that a run would leave behind, as functions that undo them: last first, on every way out. */
const undoing = new Set<() => void>()

/** Registers a function that undoes something at the end of the run; the returned function undoes it now. */
export function undoOnExit(undo: () => void): () => void {
  const once = (): void => {
    if (!undoing.delete(once)) return
    undo()
  }
  undoing.add(once)
  return once
}

export function undoAll(): void {
  for (const undo of [...undoing].reverse()) {
    try {
      undo()
    } catch (error) {
      process.stderr.write(`bench: left behind: ${(error as Error).message}\n`)
    }
  }
}

export function installUndo(): void {
  process.on('exit', undoAll)
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    process.on(signal, () => process.exit(code))
  }
}

const TMPFS = 0x01021994

/** A folder on a disk: in memory a durable ledger would be measured without the cost of its durability. */
function diskFolder(): string {
  const candidates = [tmpdir(), '/var/tmp']
  for (const folder of candidates) {
    try {
      if (statfsSync(folder).type !== TMPFS) return folder
    } catch {
      // This folder is not there: the next one is tried.
    }
  }
  const own = fileURLToPath(new URL('.scratch', import.meta.url))
  mkdirSync(own, { recursive: true })
  return own
}

export interface ScratchFolder {
  readonly path: string
  remove(): void
}

export function makeScratchFolder(purpose: string): ScratchFolder {
  const path = mkdtempSync(join(diskFolder(), `tollgate-bench-${purpose}-`))
  const remove = undoOnExit(() => rmSync(path, { recursive: true, force: true, maxRetries: 3 }))
  return { path, remove }
}
