import type { CallClosing } from './call.ts'
import { readSpoolLine } from './spool-line.ts'

export interface FoundSpool {
  /** What was kept and not marked done, oldest first. */
  readonly left: readonly CallClosing[]
  /** The file ends in the middle of a line, or in one that is damaged: whoever wrote it was not told it is kept. */
  readonly torn: boolean
  /** Damaged lines before the last. They may have been kept. */
  readonly damagedLines: number
}

const NEWLINE = 0x0a

/** Reads what an earlier life of the process has left. Damage costs the lines that it hit, never the others. */
export function readSpool(bytes: Buffer): FoundSpool {
  const left = new Map<string, CallClosing>()
  let damagedLines = 0
  let torn = false
  for (let start = 0; start < bytes.length; ) {
    const newline = bytes.indexOf(NEWLINE, start)
    const end = newline === -1 ? bytes.length : newline
    const entry = readSpoolLine(bytes.subarray(start, end))
    if (entry?.kind === 'done') left.delete(entry.requestId)
    if (entry?.kind === 'kept') left.set(entry.closing.requestId, entry.closing)
    start = end + 1
    if (entry !== null) continue
    if (start >= bytes.length) torn = true
    else damagedLines += 1
  }
  return { left: [...left.values()], torn, damagedLines }
}
