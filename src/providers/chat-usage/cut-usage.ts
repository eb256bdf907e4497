import type { ReplyDocument } from '../../metering/meter.ts'
import type { EventCut } from '../../metering/sse-events.ts'
import { isObject } from '../usage/reading.ts'

/**
 * Takes out of a chat stream the usage that upstream added because the gateway asked for it: the chunk that reports usage and
 * nothing else is removed, any other chunk loses the member `usage`. All other bytes stay, and so does data that is no
 * JSON object.
 */
export function cutUsage(document: ReplyDocument | null, data: Buffer, isLast: boolean): EventCut {
  if (document === null || !document.isWhole) return isLast ? cutUnfinished(data) : 'pass'
  const chunk = document.value
  if (!isObject(chunk) || !Object.hasOwn(chunk, 'usage')) return 'pass'
  const { choices, usage } = chunk
  if (Array.isArray(choices) && choices.length === 0 && usage !== null) return 'remove'
  // One character for each byte: JSON's syntax is ASCII, and the offsets stay those of the bytes.
  const text = data.toString('latin1')
  return (usage === null ? loneNullCut(text) : null) ?? usageCuts(text)
}

/**
 * The cut of nearly every chunk: `usage` is null, and the word stands nowhere else, so that the member need not be
 * searched for among the others. Null where it has to be.
 */
function loneNullCut(text: string): EventCut | null {
  const word = text.indexOf('usage')
  if (word < 0 || text.indexOf('usage', word + 5) >= 0 || text.includes('\\u00')) return null
  const nameStart = word - 1
  const valueEnd = text.indexOf('null', word) + 'null'.length
  let before = nameStart
  while (isBlank(text.charCodeAt(before - 1))) before--
  if (text[before - 1] === ',') {
    before--
    while (isBlank(text.charCodeAt(before - 1))) before--
    return [before, valueEnd]
  }
  let behind = valueEnd
  while (isBlank(text.charCodeAt(behind))) behind++
  if (text[behind] !== ',') return [nameStart, valueEnd]
  behind++
  while (isBlank(text.charCodeAt(behind))) behind++
  return [nameStart, behind]
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09 || code === 0x0a || code === 0x0d
}

interface Member {
  readonly isUsage: boolean
  readonly start: number
  end: number
}

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/gs

/** The members of the outermost object of a text that is known to be JSON. */
function membersOf(text: string): Member[] {
  const members: Member[] = []
  let depth = 0
  let isName = false
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    const isOpening = token === '{' || token === '['
    if (token === '}' || token === ']') depth--
    const last = members.at(-1)
    if (depth === 1 && isName)
      members.push({ isUsage: JSON.parse(token) === 'usage', start: index, end: index })
    else if (depth >= 1 && last !== undefined && token !== ',') last.end = index + token.length
    isName = (depth === 1 && token === ',') || (depth === 0 && isOpening)
    if (isOpening) depth++
  }
  return members
}

/**
 * All members `usage`, each with the comma and the blanks that join it to the member before it or, when none before it
 * stays, to the member behind it: the chunk is as the same writer would have written it without usage.
 */
function usageCuts(text: string): number[] {
  const cuts: number[] = []
  const members = membersOf(text)
  let before = 0
  let anyStays = false
  for (const [i, { isUsage, start, end }] of members.entries()) {
    if (!isUsage) anyStays = true
    else if (anyStays) cuts.push(before, end)
    else cuts.push(start, members[i + 1]?.start ?? end)
    before = end
  }
  return cuts
}

/** A chunk with a choice in it is not the one that reports usage. */
const ORDINARY = /"choices"\s*:\s*\[\s*[^\s\]]|"error"\s*:/

/** The beginning of a member `usage`, with or without escapes in its name, or of a name that is not whole. */
const USAGE_BEGINS = /(?:\s*,|(?<=\{))\s*"(?:usage"|[^"]*\\u00)|\s*(?:,\s*(?:"[^"]*"?\s*)?)?$/

/**
 * The stream ended within a chunk. The client gets the beginning of what it would have got: nothing as long as the
 * chunk may be the one that reports usage, then all of it up to its usage.
 */
function cutUnfinished(data: Buffer): EventCut {
  const text = data.toString('latin1')
  if (!/^\s*(?:\{|$)/.test(text)) return 'pass'
  if (!ORDINARY.test(text)) return 'remove'
  return [text.search(USAGE_BEGINS), text.length]
}
