import { mkdtempSync, rmSync } from 'node:fs'
import { cp, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CallClosing } from '../../src/ledger/call.ts'
import {
  openSettlementSpool,
  readSpool,
  replaceFile,
  type SettlementSpool,
} from '../../src/ledger/settlement-spool.ts'
import { createLogLines } from '../support/log-lines.ts'

/** Files of one process share this folder, so it is removed at the end of the process, not of a file. */
export const parent = mkdtempSync(join(tmpdir(), 'tollgate-test-spool-'))
process.once('exit', () => rmSync(parent, { recursive: true, force: true }))

export interface Bench {
  readonly dir: string
  readonly file: string
  readonly lines: string[]
  readonly disk: DiskWatch
  open(): Promise<SettlementSpool>
  /** The closings that another process would find if this one ended now. */
  onDisk(): Promise<readonly CallClosing[]>
}

/** A spool so small that four large records do not fit, so that it is rewritten many times. */
export const BYTES_MAX = 40_000
export const LARGE = 'x'.repeat(BYTES_MAX / 4)

export async function bench(): Promise<Bench> {
  const dir = join(await mkdtemp(join(parent, 'dir-')), 'spool')
  const { log, lines } = createLogLines()
  const disk = watchDisk()
  const file = join(dir, 'settlements.jsonl')
  return {
    ...{ dir, file, lines, disk },
    open: () => openSettlementSpool(dir, log, { replaceFile: disk.replaceFile, bytesMax: BYTES_MAX }),
    async onDisk() {
      const copy = await mkdtemp(join(parent, 'copy-'))
      await cp(dir, copy, { recursive: true })
      return (await readSpool(join(copy, 'settlements.jsonl'))).left
    },
  }
}

export interface DiskWatch {
  readonly changes: (readonly string[])[]
  /** While a fault is set, changes fail: before the file has changed, or after. */
  fault: 'no room' | 'failed fsync' | 'written and not acknowledged' | null
  /** Changes wait for the gate while it is set. */
  gate: Promise<void> | null
  replaceFile(path: string, content: string): Promise<void>
}

export function watchDisk(): DiskWatch {
  const watch: DiskWatch = {
    changes: [],
    fault: null,
    gate: null,
    async replaceFile(path, content) {
      const { fault } = watch
      watch.changes.push([...content.matchAll(/"requestId":"(\w+)"/g)].map(([, id = '']) => id))
      if (fault === 'failed fsync' || fault === 'no room') throw new Error(fault)
      await watch.gate
      await replaceFile(path, content)
      if (fault !== null) throw new Error(fault)
    },
  }
  return watch
}

export const idsOf = (closings: readonly CallClosing[]) => closings.map(({ requestId }) => requestId)
