import type { WholeReply } from '../http/exchange.ts'
import { isOwnedPath } from '../http/judge-head.ts'
import type { Refusal } from '../kernel/errors.ts'
import { shapeError } from '../providers/error-shape.ts'
import { chooseSurface } from '../providers/find-endpoint.ts'

/**
 * The error for bytes that never became a request, in the shape of the surface they seem to be meant for. The
 * text may be any part of a head, or garbage; it is only searched, never used.
 */
export function shapeBroken(refusal: Refusal, head: string, requestId: string): WholeReply {
  const target = /^[A-Za-z]+ ([^ ?]+)/.exec(head)?.[1] ?? ''
  if (isOwnedPath(target)) return shapeError('own', refusal, requestId)
  const lines = head.toLowerCase().split(/[\r\n]/)
  const surface = chooseSurface(target, (name) => lines.some((line) => line.startsWith(`${name}:`)))
  return shapeError(surface, refusal, requestId)
}
