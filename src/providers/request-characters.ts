import type { RequestFacts } from '../metering/request-facts.ts'

/** The speech models that are sold by the character of their input. Nothing of that is on the wire. */
const SOLD_BY_CHARACTER = /^tts-1(?:-hd)?(?:-\d{4})?$/

/** What a speech request is to say, and how. */
export interface SpeechRequest {
  /** Characters as people count them, not UTF-16 units. */
  readonly characters: number
  /** False: the text was too long to be kept, and there are at most so many. No upstream is known to take such a text. */
  readonly exact: boolean
  /** `response_format`, where the request names one. */
  readonly format: string | null
}

/** Null for every request that is none: only where speech is made `input` is looked for. */
export function speechRequest(facts: RequestFacts): SpeechRequest | null {
  const input = facts.kind === 'json' ? facts.scan.members.get('input') : undefined
  if (facts.kind !== 'json' || input === undefined) return null
  const named = facts.scan.members.get('response_format')
  const format = named?.kind === 'string' ? named.value : null
  if (input.kind === 'string') return { characters: codePoints(input.value), exact: true, format }
  return { characters: input.end - input.start, exact: false, format }
}

/** The request, if its model is one that is sold by its characters. */
export function soldByCharacter(model: string | null, speech: SpeechRequest | null): SpeechRequest | null {
  return model !== null && SOLD_BY_CHARACTER.test(model) ? speech : null
}

function codePoints(text: string): number {
  let pairs = 0
  for (let i = 1; i < text.length; i++) {
    const isPair = (text.charCodeAt(i) & 0xfc00) === 0xdc00 && (text.charCodeAt(i - 1) & 0xfc00) === 0xd800
    if (isPair) pairs++
  }
  return text.length - pairs
}
