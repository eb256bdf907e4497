import { limits } from '../kernel/limits.ts'
import type { CallRecord } from '../ledger/call.ts'
import type { CallCursor, CallFilter, RequestLogStore } from '../ledger/request-log.ts'
import { CSV_TYPE, csvRow } from './csv.ts'
import { REQUEST_COLUMNS, requestCells } from './request-cells.ts'
import { requestObject } from './request-object.ts'

/** How the calls of an export are written. */
export interface ExportForm {
  readonly contentType: string
  readonly extension: string
  readonly head: string
  line(call: CallRecord): string
}

export const NDJSON: ExportForm = {
  contentType: 'application/x-ndjson',
  extension: 'ndjson',
  head: '',
  line: (call) => `${JSON.stringify(requestObject(call))}\n`,
}

export const CSV: ExportForm = {
  contentType: CSV_TYPE,
  extension: 'csv',
  head: csvRow(REQUEST_COLUMNS),
  line: (call) => csvRow(requestCells(call)),
}

/**
 * All calls that match, a page at a time, so that millions need no more memory than a few. Each look is a chunk,
 * even an empty one: where matches are rare, whoever sends them can stop between looks.
 */
export async function* exportRequests(
  store: Pick<RequestLogStore, 'listCalls'>,
  filter: CallFilter,
  after: CallCursor | null,
  callsMax: number,
  form: ExportForm,
): AsyncGenerator<Buffer, void, undefined> {
  let place = after
  let left = callsMax
  let text = form.head
  do {
    const page = await store.listCalls(filter, place, Math.min(left, limits.exportPageCallsMax))
    for (const call of page.calls) text += form.line(call)
    yield Buffer.from(text)
    text = ''
    left -= page.calls.length
    place = page.next
  } while (place !== null && left > 0)
}
