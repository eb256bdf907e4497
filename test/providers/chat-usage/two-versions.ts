import fc from 'fast-check'
import { cutUsage } from '../../../src/providers/chat-usage.ts'
import { createMeter } from '../../../src/providers/surfaces.ts'
import { anyCharacter } from '../../support/any-character.ts'

/** The meter of a chat stream with injected usage, limited to removing it. */
export class UsageCutter {
  readonly #meter = createMeter('chat', 'text/event-stream', cutUsage)

  write(chunk: Buffer): Buffer | null {
    return this.#meter.write(chunk)
  }

  end(): Buffer | null {
    this.#meter.end(false)
    return this.#meter.remainder?.() ?? null
  }
}

/** A chat stream as the same upstream sends it with and without requested usage, block by block. */
export interface TwoVersions {
  readonly asked: readonly string[]
  /** As many blocks as `asked`; a block is empty where `asked` has the chunk with usage. */
  readonly notAsked: readonly string[]
}

/** The style of a server: its whitespace, its line ends, its handling of usage. */
interface Habits {
  readonly eol: string
  readonly dataField: string
  readonly comma: string
  readonly colon: string
  readonly pad: string
  readonly escapesUnicode: boolean
  readonly usageName: string
  /** The position of `usage` among the members of a chunk. */
  readonly usagePlace: number
  readonly nullUsage: boolean
  /** Whether usage is in the last chunk with content, not in a separate chunk. */
  readonly usageInLastContent: boolean
  readonly hasDone: boolean
}

const habits: fc.Arbitrary<Habits> = fc.record({
  eol: fc.constantFrom('\n', '\n', '\r\n', '\r'),
  dataField: fc.constantFrom('data: ', 'data: ', 'data:'),
  comma: fc.constantFrom(',', ',', ', ', ' , ', ',\t'),
  colon: fc.constantFrom(':', ': ', ' : '),
  pad: fc.constantFrom('', '', ' '),
  escapesUnicode: fc.boolean(),
  usageName: fc.constantFrom('"usage"', '"usage"', '"usage"', '"us\\u0061ge"', '"\\u0075s\\u0061\\u0067e"'),
  usagePlace: fc.nat({ max: 8 }),
  nullUsage: fc.integer({ min: 0, max: 3 }).map((n) => n > 0),
  usageInLastContent: fc.integer({ min: 0, max: 4 }).map((n) => n === 0),
  hasDone: fc.integer({ min: 0, max: 7 }).map((n) => n > 0),
})

const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.string({ unit: anyCharacter, maxLength: 6 }),
  fc.constantFrom(
    'usage',
    '"usage":null',
    ',"usage":{"total_tokens":1}}',
    '\n\ndata: {"choices":[],"usage":{}}\n\n',
    '\\u0075sage',
    '\\',
    '"',
    '\r\n',
    '{"usage":',
    'data: [DONE]',
  ),
)

const delta = fc.oneof(
  fc.record({ content: text }),
  fc.record({ role: fc.constant('assistant'), content: fc.constant(''), refusal: fc.constant(null) }),
  fc.record({
    tool_calls: fc.tuple(
      fc.record({ index: fc.nat({ max: 3 }), function: fc.record({ name: text, arguments: text }) }),
    ),
  }),
  fc.constant({}),
  fc.constant({ usage: null, deeper: { usage: { usage: [] } } }),
)

const choice = fc.record({
  index: fc.nat({ max: 3 }),
  delta,
  logprobs: fc.oneof(
    fc.constant(null),
    fc.record({ content: fc.array(fc.record({ token: text }), { maxLength: 2 }) }),
  ),
  finish_reason: fc.constantFrom(null, 'stop', 'usage'),
})

type Piece =
  | {
      readonly kind: 'chunk'
      readonly choices: readonly unknown[]
      readonly fields: Fields
      readonly pad: string
    }
  | { readonly kind: 'raw'; readonly lines: readonly string[] }
interface Fields {
  readonly before: readonly string[]
  readonly behind: readonly string[]
}

function fieldsAmong(before: string[]): fc.Arbitrary<Fields> {
  return fc.oneof(
    { weight: 4, arbitrary: fc.constant({ before: [], behind: [] }) },
    fc.record({
      before: fc.subarray(before, { maxLength: 2 }),
      behind: fc.subarray(['id: 8', ': a comment', 'event:usage'], { maxLength: 2 }),
    }),
  )
}
const fields = fieldsAmong(['event: chunk', 'id: 7', 'retry: 10', 'odd field', ': a comment'])
/** A comment before the data passes without its event; an odd field passes at the end of the stream. */
const extraFields = fieldsAmong(['event: chunk', 'id: 7', 'retry: 10'])

const piece: fc.Arbitrary<Piece> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('chunk' as const),
      choices: fc.array(choice, { minLength: 1, maxLength: 3 }),
      fields,
      pad: fc.string({ maxLength: 6 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Piece>(
      { kind: 'raw', lines: [': keep-alive'] },
      { kind: 'raw', lines: [':'] },
      { kind: 'raw', lines: [] },
      { kind: 'raw', lines: ['event: ping', 'data: {"type":"ping","about":"usage"}'] },
      { kind: 'raw', lines: ['data: {"error":{"message":"no more \\"usage\\"","usage":{"a":1}}}'] },
      { kind: 'raw', lines: ['event: error', 'data: {"usage" is no JSON'] },
      { kind: 'raw', lines: ['data: ["usage",{"usage":null}]'] },
      { kind: 'raw', lines: ['retry: 3000'] },
    ),
  },
)

const usage = fc.record({
  prompt_tokens: fc.nat(),
  completion_tokens: fc.nat(),
  prompt_tokens_details: fc.record({ cached_tokens: fc.nat(), usage: fc.constant(null) }),
})

export const twoVersions: fc.Arbitrary<TwoVersions> = fc
  .record({ habits, pieces: fc.array(piece, { maxLength: 7 }), usage, extraFields, filters: fc.boolean() })
  .map(({ habits, pieces, usage, extraFields, filters }) => {
    const asked: string[] = []
    const notAsked: string[] = []
    const add = (withUsage: string, without: string): void => {
      asked.push(withUsage)
      notAsked.push(without)
    }
    const nothingYet = habits.nullUsage ? null : undefined
    // Some servers send a first chunk with filter results and no choices.
    if (filters)
      add(...both([], nothingYet, ['prompt_filter_results', []], { before: [], behind: [] }, habits))
    const last = pieces.findLastIndex(({ kind }) => kind === 'chunk')
    for (const [i, piece] of pieces.entries()) {
      if (piece.kind === 'raw') {
        const block = [...piece.lines, ''].map((line) => line + habits.eol).join('')
        add(block, block)
        continue
      }
      const said = habits.usageInLastContent && i === last ? usage : nothingYet
      add(...both(piece.choices, said, ['obfuscation', piece.pad], piece.fields, habits))
    }
    if (!habits.usageInLastContent) {
      const [extra] = both([], usage, ['obfuscation', ''], extraFields, habits)
      add(extra, '')
    }
    const done = `data: [DONE]${habits.eol}${habits.eol}`
    if (habits.hasDone) add(done, done)
    return { asked, notAsked }
  })

function both(
  choices: readonly unknown[],
  usage: object | null | undefined,
  last: readonly [name: string, value: unknown],
  fields: Fields,
  habits: Habits,
): [asked: string, notAsked: string] {
  const members = Object.entries({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1_763_164_800,
    model: 'gpt-5',
    choices,
    [last[0]]: last[1],
  }).map(([name, value]) => `${JSON.stringify(name)}${habits.colon}${write(value, habits)}`)
  const withUsage = [...members]
  const place = Math.min(habits.usagePlace, members.length)
  if (usage !== undefined)
    withUsage.splice(place, 0, `${habits.usageName}${habits.colon}${write(usage, habits)}`)
  return [event(withUsage, fields, habits), event(members, fields, habits)]
}

function event(members: readonly string[], fields: Fields, habits: Habits): string {
  const { eol, dataField, comma, pad } = habits
  return [...fields.before, `${dataField}{${pad}${members.join(comma)}${pad}}`, ...fields.behind, '']
    .map((line) => line + eol)
    .join('')
}

function write(value: unknown, habits: Habits): string {
  const { comma, colon, pad } = habits
  if (Array.isArray(value)) return `[${pad}${value.map((item) => write(item, habits)).join(comma)}${pad}]`
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).map(([name, item]) => `"${name}"${colon}${write(item, habits)}`)
    return `{${pad}${members.join(comma)}${pad}}`
  }
  const json = JSON.stringify(value)
  return habits.escapesUnicode ? json.replace(/[^\x20-\x7e]/g, escaped) : json
}

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** The bytes cut at arbitrary positions, often into single bytes. */
export function slicesOf(bytes: Buffer): fc.Arbitrary<Buffer[]> {
  const places = fc.oneof(
    fc.array(fc.nat({ max: bytes.length }), { maxLength: 12 }),
    fc.constant(Array.from({ length: bytes.length }, (_, i) => i)),
    fc
      .integer({ min: 2, max: 40 })
      .map((step) => Array.from({ length: bytes.length / step }, (_, i) => i * step)),
  )
  return places.map((cuts) => {
    const ends = [...cuts.toSorted((a, b) => a - b), bytes.length]
    return ends.map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end))
  })
}
