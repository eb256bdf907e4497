import { boolean, type Infer, nullable, object, parseExact, string, WrongAnswer } from './answer-schema.ts'
import type { Api } from './api.ts'
import { Failure } from './command.ts'
import {
  type Cell,
  type Column,
  left,
  right,
  shownCount,
  shownInstant,
  shownText,
  type TerminalStyle,
  tableLine,
  titleLine,
  withDecimals,
} from './terminal.ts'
import type { Asked } from './transport.ts'

/** A call of the log as the API answers it. Numbers are texts. */
const callAnswer = object({
  id: string,
  key_id: string,
  state: string,
  path: string,
  code: nullable(string),
  started_at: string,
  ended_at: nullable(string),
  model: nullable(string),
  model_served: nullable(string),
  status: nullable(string),
  usage: nullable(object({ input_tokens: string, output_tokens: string, cache_read_tokens: string })),
  cost_usd: nullable(string),
  streamed: boolean,
  estimated: boolean,
  unpriced: boolean,
  overrun: boolean,
  priced_as_requested: boolean,
  credited: boolean,
})

export interface LoggedCall extends Readonly<Infer<typeof callAnswer>> {
  /** The line of the answer as it came. */
  readonly json: string
}

export type LogQuery = NonNullable<Asked['query']>

/** The calls that match, newest first, one at a time however many there are. */
export async function* readCalls(
  api: Api,
  path: string,
  query: LogQuery,
  signal?: AbortSignal,
): AsyncGenerator<LoggedCall> {
  const chunks = await api.stream(path, { ...query, format: 'ndjson' }, signal)
  for await (const json of linesOf(chunks)) {
    try {
      yield { ...callAnswer(parseExact(json)), json }
    } catch (error) {
      if (!(error instanceof WrongAnswer)) throw error
      throw new Failure(`${api.place} lists calls, but not as a Tollgate of this version does.`)
    }
  }
}

/** Far more than a record has: a few texts of a thousand characters. */
const LINE_CHARS_MAX = 1024 * 1024

async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
    if (rest.length > LINE_CHARS_MAX) throw new Failure('A line of the answer has no end.')
  }
  if (rest !== '') yield rest
}

interface CallColumn extends Column {
  /** The width is fixed, because the first call is printed before the last one is known. */
  readonly width: number
  of(call: LoggedCall): Cell
}

const COLUMNS: readonly CallColumn[] = [
  { ...left('began (UTC)'), width: 19, of: ({ started_at }) => shownInstant(started_at) },
  { ...left('request'), width: 30, of: ({ id }) => shownText(id) },
  { ...left('key'), width: 30, of: ({ key_id }) => shownText(key_id) },
  {
    ...left('model'),
    width: 24,
    of: ({ model_served, model }) => shownText(model_served ?? model ?? '-', 24),
  },
  { ...left('path'), width: 28, of: ({ path }) => shownText(path, 28) },
  { ...left('status'), width: 11, of: statusCell },
  { ...right('input'), width: 9, of: ({ usage }) => countCell(usage?.input_tokens) },
  { ...right('cached'), width: 9, of: ({ usage }) => countCell(usage?.cache_read_tokens) },
  { ...right('output'), width: 9, of: ({ usage }) => countCell(usage?.output_tokens) },
  {
    ...right('cost (USD)'),
    width: 13,
    of: ({ cost_usd }) => (cost_usd === null ? '-' : shownText(withDecimals(cost_usd, 9))),
  },
  { ...left('flags'), width: 0, of: (call) => ({ text: flagsOf(call), style: 'yellow' }) },
]

const FLAGS = ['streamed', 'estimated', 'unpriced', 'overrun', 'priced_as_requested', 'credited'] as const

export interface CallTable {
  readonly title: string
  line(call: LoggedCall): string
}

/** Columns that a narrow terminal can do without, in this order. */
const DISPENSABLE = ['key', 'path', 'cached']

/** Calls line by line. On a terminal that is too narrow for all columns some are left out; --json has them. */
export function callTable(style: TerminalStyle): CallTable {
  let columns = COLUMNS
  for (const title of DISPENSABLE) {
    if (columns.reduce((sum, { width }) => sum + width + 2, 0) <= style.columns) break
    columns = columns.filter((column) => column.title !== title)
  }
  const widths = columns.map(({ width }) => width)
  return {
    title: `${titleLine(columns, widths, style)}\n`,
    line(call) {
      const cells = columns.map(({ of }) => of(call))
      return `${tableLine(columns, widths, cells, style)}\n`
    },
  }
}

/** Upstream's status, or the state of a call that has none or was interrupted; a refused call has our own status. */
function statusCell({ status, state }: LoggedCall): Cell {
  if (state === 'waiting') return { text: 'waiting', style: 'yellow' }
  if (state === 'in_flight') return { text: 'in flight', style: 'dim' }
  if (state === 'deferred') return { text: 'deferred', style: 'yellow' }
  if (status === null || state === 'interrupted') return { text: shownText(state, 11), style: 'red' }
  return { text: shownText(status, 11), style: /^[123]/.test(status) ? 'green' : 'red' }
}

function countCell(count: string | undefined): string {
  return count === undefined ? '-' : shownText(shownCount(count))
}

function flagsOf(call: LoggedCall): string {
  const code = call.code === null ? [] : [shownText(call.code)]
  return [...code, ...FLAGS.filter((flag) => call[flag])].join(' ')
}
