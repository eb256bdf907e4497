import { mkdtempSync, rmSync } from 'node:fs'
import { cp, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CallClosing } from '../../src/ledger/call.ts'
import {
  openSettlementSpool,
  openSpoolWriter,
  type SettlementSpool,
  type SpoolWriter,
} from '../../src/ledger/settlement-spool.ts'
import { readSpoolFile } from '../../src/ledger/spool-file.ts'
import type { SpoolChange } from '../../src/ledger/spool-thread.ts'
import { createLogLines } from '../support/log-lines.ts'

/** Files of the same process share this folder, so it is removed at the end of the process and not of a file. */
export const parent = mkdtempSync(join(tmpdir(), 'tollgate-test-spool-'))
process.once('exit', () => rmSync(parent, { recursive: true, force: true }))

export interface Bench {
  readonly dir: string
  readonly file: string
  readonly lines: string[]
  readonly disk: WriterWatch
  open(): Promise<SettlementSpool>
  /** The closings that another process would find, if this one ended now. */
  onDisk(): Promise<readonly CallClosing[]>
}

/** A spool so small that four large records do not fit, and that can be written many times over. */
export const BYTES_MAX = 40_000
export const LARGE = 'x'.repeat(BYTES_MAX / 4)

export async function bench(): Promise<Bench> {
  const dir = join(await mkdtemp(join(parent, 'dir-')), 'spool')
  const { log, lines } = createLogLines()
  const disk = watchWriter()
  const file = join(dir, 'settlements.db')
  return {
    ...{ dir, file, lines, disk },
    open: () => openSettlementSpool(dir, log, { openWriter: disk.open, bytesMax: BYTES_MAX }),
    async onDisk() {
      const copy = await mkdtemp(join(parent, 'copy-'))
      await cp(dir, copy, { recursive: true })
      return readSpoolFile(join(copy, 'settlements.db')).left
    },
  }
}

/** The changes that were written to the file of a spool, and the fault of the next write. */
export interface WriterWatch {
  readonly changes: SpoolChange[]
  /** While a fault is set writes fail: before anything is in the file, or with the change in it. */
  fault: 'no room' | 'failed fsync' | 'written and not told' | null
  /** Writes wait for the gate, while it is set. */
  gate: Promise<void> | null
  open(path: string): SpoolWriter
}

export function watchWriter(): WriterWatch {
  const watch: WriterWatch = { changes: [], fault: null, gate: null, open }

  function open(path: string): SpoolWriter {
    const writer = openSpoolWriter(path)
    return {
      async write(change) {
        const { fault } = watch
        watch.changes.push(change)
        if (fault === 'failed fsync' || fault === 'no room') throw new Error(fault)
        await watch.gate
        await writer.write(change)
        if (fault !== null) throw new Error(fault)
      },
      close: () => writer.close(),
    }
  }

  return watch
}

export const idsOf = (closings: readonly CallClosing[]) => closings.map(({ requestId }) => requestId)
