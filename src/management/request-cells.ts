import type { CallRecord } from '../ledger/call.ts'
import type { CsvCell } from './csv.ts'
import { requestObject, requestSchema, tokensSchema } from './request-object.ts'

const TOKENS = Object.keys(tokensSchema.shape)

/** The members of a request in their order, with its counts of tokens in the place of `usage`. */
export const REQUEST_COLUMNS: readonly string[] = Object.keys(requestSchema.shape).flatMap((name) =>
  name === 'usage' ? TOKENS : [name],
)

/** A call as a row of a table. */
export function requestCells(call: CallRecord): CsvCell[] {
  const { usage, ...members } = requestObject(call)
  const cells: Readonly<Record<string, CsvCell>> = { ...members, ...usage }
  return REQUEST_COLUMNS.map((name) => cells[name] ?? null)
}
