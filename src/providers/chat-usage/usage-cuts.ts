import type { ChunkObject } from './chunk-members.ts'

/**
 * The bytes of all members `usage`: start, end, start, end … in order. Each goes with the comma and the blanks that
 * join it to the member before it or, when none before it stays, to the member behind it: what is left is what the same
 * writer would have written without it.
 */
export function usageCuts({ members }: ChunkObject): number[] {
  const cuts: number[] = []
  let before = 0
  let anyStays = false
  for (const [i, { name, nameStart, end }] of members.entries()) {
    if (name !== 'usage') anyStays = true
    else if (anyStays) cuts.push(before, end)
    else cuts.push(nameStart, members[i + 1]?.nameStart ?? end)
    before = end
  }
  return cuts
}

/**
 * The same for nearly every chunk there is, where `usage` is null and the word is nowhere else: then the member needs
 * no search through the others, which takes longer than everything else that is done to a chunk. The text is JSON and
 * has the member; null when it has to be searched for.
 */
export function loneNullCut(text: string): readonly [start: number, end: number] | null {
  const word = text.indexOf('usage')
  if (word < 0 || text.indexOf('usage', word + 5) >= 0 || text.includes('\\u00')) return null
  const nameStart = word - 1
  const valueEnd = text.indexOf('null', word) + 4
  const comma = skipBlanksBack(text, nameStart)
  if (text[comma - 1] === ',') return [skipBlanksBack(text, comma - 1), valueEnd]
  const next = skipBlanks(text, valueEnd)
  return [nameStart, text[next] === ',' ? skipBlanks(text, next + 1) : valueEnd]
}

function skipBlanks(text: string, from: number): number {
  let i = from
  while (isBlank(text.charCodeAt(i))) i++
  return i
}

function skipBlanksBack(text: string, from: number): number {
  let i = from
  while (isBlank(text.charCodeAt(i - 1))) i--
  return i
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}
