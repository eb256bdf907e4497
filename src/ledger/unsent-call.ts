import type { CallRecord } from './call.ts'
import { NOTHING_RECORDED } from './call-columns.ts'

type Known =
  | 'requestId'
  | 'accountId'
  | 'keyId'
  | 'state'
  | 'startedAtMs'
  | 'method'
  | 'path'
  | 'surface'
  | 'modelAsked'
  | 'clientIp'
  | 'userAgent'

/** The record of a call that never went upstream: one that waits, or one that was refused. */
export function unsentCall(parts: Pick<CallRecord, Known> & Partial<CallRecord>): CallRecord {
  return { ...NOTHING_RECORDED, ...parts }
}
