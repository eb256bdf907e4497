import type { LoggedCall } from './logged-call.ts'
import type { Look } from './look.ts'
import { shownCount, withDecimals } from './shown-figures.ts'
import { shownInstant, shownText } from './shown-text.ts'
import { type Cell, type Column, tableLine, titleLine } from './table.ts'

interface CallColumn extends Column {
  /** Fixed, because the first call is printed before the last one is known. */
  readonly width: number
  of(call: LoggedCall): Cell
}

const MODEL_CHARS_MAX = 24
const PATH_CHARS_MAX = 28

const COLUMNS: readonly CallColumn[] = [
  { title: 'began (UTC)', align: 'left', width: 19, of: ({ started_at }) => shownInstant(started_at) },
  { title: 'request', align: 'left', width: 30, of: ({ id }) => shownText(id) },
  { title: 'key', align: 'left', width: 30, of: ({ key_id }) => shownText(key_id) },
  {
    title: 'model',
    align: 'left',
    width: MODEL_CHARS_MAX,
    of: ({ model_served, model }) => shownText(model_served ?? model ?? '-', MODEL_CHARS_MAX),
  },
  {
    title: 'path',
    align: 'left',
    width: PATH_CHARS_MAX,
    of: ({ path }) => shownText(path, PATH_CHARS_MAX),
  },
  { title: 'status', align: 'left', width: 11, of: statusCell },
  { title: 'input', align: 'right', width: 9, of: ({ usage }) => countCell(usage?.input_tokens) },
  { title: 'cached', align: 'right', width: 9, of: ({ usage }) => countCell(usage?.cache_read_tokens) },
  { title: 'output', align: 'right', width: 9, of: ({ usage }) => countCell(usage?.output_tokens) },
  {
    title: 'cost (USD)',
    align: 'right',
    width: 13,
    of: ({ cost_usd }) => (cost_usd === null ? '-' : shownText(withDecimals(cost_usd, 9))),
  },
  { title: 'flags', align: 'left', width: 0, of: (call) => ({ text: flagsOf(call), style: 'yellow' }) },
]

const FLAGS = ['streamed', 'estimated', 'unpriced', 'overrun', 'priced_as_requested', 'credited'] as const

export interface CallTable {
  readonly title: string
  line(call: LoggedCall): string
}

/** What a narrow terminal can do without, in this order. */
const DISPENSABLE = ['key', 'path', 'cached']

/** Calls line by line. On a terminal that is too narrow for all of it some columns are left out; --json has them. */
export function callTable(look: Look): CallTable {
  let columns = COLUMNS
  for (const title of DISPENSABLE) {
    if (columns.reduce((sum, { width }) => sum + width + 2, 0) <= look.columns) break
    columns = columns.filter((column) => column.title !== title)
  }
  const widths = columns.map(({ width }) => width)
  return {
    title: `${titleLine(columns, widths, look)}\n`,
    line(call) {
      const cells = columns.map(({ of }) => of(call))
      return `${tableLine(columns, widths, cells, look)}\n`
    },
  }
}

/** What upstream answered, or what became of a call that it did not answer; of a refused one, what we answered. */
function statusCell({ status, state }: LoggedCall): Cell {
  if (state === 'waiting') return { text: 'waiting', style: 'yellow' }
  if (state === 'in_flight') return { text: 'in flight', style: 'dim' }
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
