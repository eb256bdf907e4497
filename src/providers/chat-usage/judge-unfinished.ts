import { mayBeEmptyArray, readChunkMembers } from './chunk-members.ts'
import { dataLinesOf, JoinedData, linesOf } from './data-lines.ts'
import { judgeEvent, PASS, REMOVE, type Verdict } from './judge-event.ts'
import { usageCuts } from './usage-cuts.ts'

const FIELDS = ['data', 'event', 'id', 'retry']

/**
 * Of the lines that a stream ended in, before their event did. What is given on is the beginning of what the client
 * would have got: as long as the event may be the chunk that reports usage, nothing of it; then all but its usage.
 */
export function judgeUnfinished(bytes: Buffer, start: number, end: number): Verdict {
  const lines = dataLinesOf(bytes, start, end)
  const data = new JoinedData(bytes, lines)
  const text = data.bytes
  if (isBlank(text)) return mayBecomeData(bytes, start, end) ? REMOVE : PASS
  const object = readChunkMembers(text, 0, text.length)
  if (object === null) return PASS
  if (object.end !== null) return judgeEvent(bytes, start, end)

  const { members } = object
  const isOrdinary = members.some(
    (member) => member.name === 'error' || (member.name === 'choices' && !mayBeEmptyArray(text, member)),
  )
  if (!isOrdinary) return REMOVE
  // A comma or half a name behind the last member may be the beginning of `usage`.
  const lastEnd = members.at(-1)?.end ?? 0
  return { kind: 'cut', cuts: [...data.toEvent(usageCuts(object)), data.placeInEvent(lastEnd), end] }
}

function isBlank(text: Buffer): boolean {
  return text.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d)
}

/** Whether all lines are such as may stand before the data of an event, and not a text that is no event stream. */
function mayBecomeData(bytes: Buffer, start: number, end: number): boolean {
  for (const line of linesOf(bytes, start, end)) {
    const [field = '', ...content] = bytes.toString('latin1', line.start, line.end).split(':', 2)
    const isUnfinished = content.length === 0 && line.end === end
    const isKnown = isUnfinished ? FIELDS.some((name) => name.startsWith(field)) : FIELDS.includes(field)
    if (!isKnown && field !== '') return false
  }
  return true
}
