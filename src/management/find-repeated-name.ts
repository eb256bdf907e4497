import { limits } from '../kernel/limits.ts'
import { scanJson } from '../metering/json-walker.ts'

/** The scanner guards against texts of any size; these have a limit of their own and were parsed already. */
const SCAN_LIMITS = {
  depthMax: limits.ownBodyBytesMax,
  nameBytesMax: limits.ownBodyBytesMax,
  membersMax: limits.ownBodyBytesMax,
}

/**
 * A name that the top-level object of a JSON text has twice, escapes decoded, or null. JSON.parse takes the last one,
 * so that `"monthly_budget_usd":5` with a null behind it would make a key without the cap that its sender reads.
 */
export function findRepeatedName(text: string, parsed: unknown): string | null {
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return null
  const scan = scanJson(Buffer.from(text), Object.keys(parsed), SCAN_LIMITS)
  // What JSON.parse has read and the scanner cannot read would be a defect, and not one to let a limit slip through.
  if (scan.kind === 'unreadable') throw new Error(`a parsed body is unreadable: ${scan.reason}`)
  return scan.duplicates[0] ?? null
}
