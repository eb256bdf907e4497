import { MARK_ENDS, markOf } from './content-marks.ts'
import {
  ACTION,
  AFTER,
  CLOSE,
  FIRST_ELEMENT,
  FIRST_NAME,
  OPEN_ARRAY,
  OPEN_OBJECT,
  OPEN_STRING,
  STEP,
} from './json-grammar.ts'
import { NEAR_BYTES, nextStop, QUOTE } from './json-string.ts'
import { ESCAPES } from './string-runs.ts'

/** The compiler treats a constant of this module as known, an imported one not: a tenth of the speed. */
const step = STEP
const after = AFTER
const markEnds = MARK_ENDS
const escapes = ESCAPES
const BACKSLASH = 0x5c

/** Where a scan stands: the next byte of the chunk, the grammar's state, and how many containers are open. */
export interface Cursor {
  i: number
  state: number
  depth: number
  /** What the strings mark that came by, as content-marks.ts says. */
  marks: number
}

/** The chunk is used up. */
export const END_OF_CHUNK = 0

/**
 * Walks through what lies below the top-level object until something has to be done about a byte: answers the action
 * of the grammar for `cursor.i`, or END_OF_CHUNK. Strings that are short and whole and have no escapes but those of one
 * character, and containers that are not directly in the top-level object, which together are nearly everything, never
 * leave this function; it holds no call and no field access in its loops, but for the rare string that may be a mark,
 * because either one halves its speed.
 */
export function walk(chunk: Buffer, words: DataView, stack: Uint8Array, cursor: Cursor): number {
  const length = chunk.length
  let { i, state, depth } = cursor
  let action = END_OF_CHUNK
  while (i < length) {
    let next = step[(state << 8) | (chunk[i] as number)] as number
    while (next < ACTION) {
      state = next
      i++
      if (i === length) break
      next = step[(state << 8) | (chunk[i] as number)] as number
    }
    if (i === length) break
    const back = after[state] as number
    if (next === OPEN_STRING) {
      const near = Math.min(i + NEAR_BYTES, length)
      let stop = nextStop(chunk, words, i + 1, near)
      while (stop + 1 < near && chunk[stop] === BACKSLASH && escapes[chunk[stop + 1] as number] === 1) {
        stop = nextStop(chunk, words, stop + 2, near)
      }
      if (stop < length && chunk[stop] === QUOTE && back < ACTION) {
        if (markEnds[chunk[stop - 1] as number] === 1) cursor.marks |= markOf(chunk, i + 1, stop)
        i = stop + 1
        state = back
        continue
      }
    } else if (next === OPEN_OBJECT || next === OPEN_ARRAY) {
      if (depth < stack.length) {
        stack[depth] = back
        depth++
        state = next === OPEN_OBJECT ? FIRST_NAME : FIRST_ELEMENT
        i++
        continue
      }
    } else if (next === CLOSE) {
      const outside = stack[depth - 1] as number
      if (outside < ACTION) {
        depth--
        state = outside
        i++
        continue
      }
    }
    action = next
    break
  }
  cursor.i = i
  cursor.state = state
  cursor.depth = depth
  return action
}
