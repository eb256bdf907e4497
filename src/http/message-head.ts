import { methods } from 'node:_http_common'
import { firstValue, hasHeader } from './raw-headers.ts'

/** What a message says before its body. The lines are flat name, value pairs, as they came. */
export interface MessageHead {
  /** Such as `1.1`. */
  readonly httpVersion: string
  readonly headers: string[]
  /** Of requests; empty otherwise. */
  readonly method: string
  readonly target: string
  /** Of replies; 0 and empty otherwise. */
  readonly status: number
  readonly reason: string
  /** Whether the connection may carry another message after this one, as far as this one says. */
  readonly keepAlive: boolean
  /** A CONNECT, or a wish to speak something else than HTTP from here on. */
  readonly switches: boolean
}

/** What the parser has found. Lines and target are missing where they came in parts before. */
export type HeadGiven = readonly [
  major: number,
  minor: number,
  lines: string[] | undefined,
  method: number | undefined,
  target: string | undefined,
  status: number | undefined,
  reason: string | undefined,
  switches: boolean,
  keepAlive: boolean,
]

export function headOf(given: HeadGiven, headers: string[], target: string): MessageHead {
  const [major, minor, , method, , status, reason, switches, keepAlive] = given
  return {
    httpVersion: major === 1 && minor === 1 ? '1.1' : `${major}.${minor}`,
    headers,
    method: method === undefined ? '' : methodOf(method),
    target,
    status: status ?? 0,
    reason: reason ?? '',
    keepAlive,
    switches,
  }
}

/** Node's list leaves out those between, which belong to other protocols than HTTP. */
const QUERY = 46

function methodOf(number: number): string {
  return number === QUERY ? 'QUERY' : (methods[number] ?? '')
}

/**
 * The size of the body behind a head, where it is certain that there is one; in every other case the parser decides.
 * It has refused lengths that are no number, that differ, or that stand beside a transfer coding.
 */
export function sizeOf({ method, status, switches, headers }: MessageHead): number | null {
  const mayLack = status === 0 ? method === 'CONNECT' : status < 200 || status === 204 || status === 304
  const length = mayLack || switches ? undefined : firstValue(headers, 'content-length')
  if (length === undefined || hasHeader(headers, 'transfer-encoding')) return null
  const bytes = Number(length)
  return Number.isSafeInteger(bytes) && bytes > 0 ? bytes : null
}
