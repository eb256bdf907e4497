import type { MessageHead } from '../http/message-head.ts'
import { firstValue, hasHeader } from '../http/raw-headers.ts'

/** How long an idle connection is kept where upstream does not say. */
const IDLE_MS = 4_000
const IDLE_MS_MAX = 600_000

/** So much earlier than upstream we close, lest a request cross its close. */
const MARGIN_MS = 2_000

/** How long the connection of this reply may wait for another request; 0 if it may not carry one. */
export function reusableMs(head: MessageHead, method: string): number {
  const { headers } = head
  // An upstream that sends a body to HEAD after all would send it into the next reply, which is another key's.
  if (method === 'HEAD' || !head.keepAlive || mayHaveUnannouncedBody(head)) return 0
  // A 408 may have been said to nobody, before our request came.
  if (head.status === 408) return 0
  const timeout = /timeout=(\d+)/.exec(firstValue(headers, 'keep-alive') ?? '')?.[1]
  if (timeout === undefined) return IDLE_MS
  return Math.max(0, Math.min(Number(timeout) * 1_000 - MARGIN_MS, IDLE_MS_MAX))
}

/** These have no body. Where they announce one, upstream may send it, and it would be read as the next reply. */
function mayHaveUnannouncedBody({ status, headers }: MessageHead): boolean {
  if (status !== 204 && status !== 304) return false
  return Number(firstValue(headers, 'content-length') ?? 0) > 0 || hasHeader(headers, 'transfer-encoding')
}
