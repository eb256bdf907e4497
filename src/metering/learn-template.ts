import { EventTemplate, type Hole } from './event-template.ts'
import type { OutputChannel } from './output-text.ts'

/** Longer events are rare, and so are those that have many values. */
const EVENT_BYTES_MAX = 2048
const DEPTH_MAX = 8

/** Where an event has its text, and where that goes. */
export interface TextPlace {
  readonly path: readonly (string | number)[]
  readonly text: string
  readonly channel: OutputChannel
}

interface Gap {
  readonly hole: Hole
  /** Offsets of the value's inside: for a string without its quotes. */
  readonly from: number
  readonly to: number
}

/**
 * Makes a template of an event: its text may differ, and so may the members named in `noise`, which stand in the
 * outermost object and say nothing. Null if the event is not of a kind that this is made for.
 */
export function learnTemplate(
  raw: Buffer,
  place: TextPlace,
  noise: ReadonlySet<string>,
): EventTemplate | null {
  if (raw.length > EVENT_BYTES_MAX) return null
  // One character per byte, so that offsets in it are offsets in the event.
  const event = raw.toString('latin1', 0, raw.length)
  const lines = [...event.matchAll(/(?<![^\r\n])data:[^\r\n]*/g)]
  const line = lines[0]
  if (line === undefined || lines.length > 1) return null
  const gaps = findGaps(line[0], line.index, place.path, noise)
  const texts = gaps.filter((gap) => gap.hole === 'text')
  const text = texts[0]
  if (text === undefined || texts.length > 1 || !says(raw, text, place.text)) return null
  const literals = [...gaps, null].map((gap, i) =>
    raw.subarray(gaps[i - 1]?.to ?? 0, gap?.from ?? raw.length),
  )
  return new EventTemplate(
    literals,
    gaps.map((gap) => gap.hole),
    place.channel,
  )
}

function says(raw: Buffer, gap: Gap, text: string): boolean {
  try {
    return JSON.parse(`"${raw.toString('utf8', gap.from, gap.to)}"`) === text
  } catch {
    return false
  }
}

/** The values that may differ, in their order. The text of the line was parsed before, so it is JSON. */
function findGaps(
  line: string,
  offset: number,
  path: readonly (string | number)[],
  noise: ReadonlySet<string>,
): Gap[] {
  const tokens = /"((?:[^"\\]|\\.)*)"|([{}[\],:])|([^\s{}[\],:"]+)/g
  tokens.lastIndex = 'data:'.length
  const gaps: Gap[] = []
  /** The name or the index at which each open container stands, the last one being that of the value to come. */
  const at: (string | number)[] = []
  let name: string | null = null
  for (const token of line.matchAll(tokens)) {
    const [whole, string, mark] = token
    const from = offset + token.index
    const last = at.length - 1
    if (mark === '{') at.push('')
    else if (mark === '[') at.push(0)
    else if (mark === '}' || mark === ']') at.pop()
    else if (mark === ',') {
      const index = at[last]
      at[last] = typeof index === 'number' ? index + 1 : ''
    } else if (mark === ':') at[last] = name ?? ''
    else if (at[last] === '') name = string ?? null
    else {
      const hole = holeFor(string, whole, at, path, noise)
      const quote = string === undefined ? 0 : 1
      if (hole !== null) gaps.push({ hole, from: from + quote, to: from + whole.length - quote })
    }
    if (at.length > DEPTH_MAX) return []
  }
  return gaps
}

function holeFor(
  string: string | undefined,
  whole: string,
  at: readonly (string | number)[],
  path: readonly (string | number)[],
  noise: ReadonlySet<string>,
): Hole | null {
  if (string !== undefined && at.length === path.length && at.every((step, i) => step === path[i]))
    return 'text'
  if (at.length !== 1 || !noise.has(String(at[0]))) return null
  if (string === undefined) return /^(?:0|[1-9][0-9]{0,14})$/.test(whole) ? 'digits' : null
  return string.includes('\\') ? null : 'string'
}
