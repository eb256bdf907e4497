import { createHash } from 'node:crypto'

// The words of every answer, and one rule to count them: a token is four bytes of UTF-8, rounded up once per piece of
// text. Real tokenizers differ by model; tests need a count that follows from the text alone.

const bytesPerToken = 4
const echoCharactersMax = 160

const greetings = ['Hello from the simulator.', 'Good to hear from you.', 'Thanks for asking.']
const sentences = [
  'Nothing was billed anywhere for these words, and nobody had to think about them.',
  'Every token of this reply follows from your request, so the same question gets the same answer.',
  'If you can read this, your client, the gateway and the upstream agree about every byte.',
  'Ask for more tokens and there will be more of this.',
]
const thoughts = [
  'The user wants a short and friendly answer.',
  'First the question itself, then what follows from it.',
]

export function countTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / bytesPerToken)
}

/** The longest beginning of `text` that is worth at most `tokens` tokens, never splitting a character. */
export function cutToTokens(text: string, tokens: number): string {
  const bytes = Buffer.from(text)
  let end = tokens * bytesPerToken
  if (bytes.length <= end) return text
  // Continuation bytes of UTF-8 begin with the bits 10: a cut there would leave half a character.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return bytes.toString('utf8', 0, end)
}

/** The text as a model streams it: one word at a time, with the blank before it. */
export function splitIntoWords(text: string): string[] {
  return text.match(/\s*\S{1,24}|\s+$/gu) ?? []
}

/** JSON arguments stream in pieces that respect no word. */
export function splitIntoPieces(text: string): string[] {
  return text.match(/.{1,12}/gsu) ?? []
}

export function seedFromText(...texts: readonly (string | Uint8Array)[]): number {
  const hash = createHash('sha256')
  for (const text of texts) hash.update(text).update('\0')
  return hash.digest().readUInt32LE(0)
}

/** A small reproducible generator (mulberry32): the same seed gives the same numbers in [0, 1). */
export function seededChance(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }
}

/** An answer about `topic` of exactly `tokens` tokens, or of a length that the seed decides. */
export function composeAnswer(topic: string, seed: number, tokens: number | undefined): string {
  const chance = seededChance(seed)
  const greeting = greetings[Math.floor(chance() * greetings.length)] ?? ''
  const echo = shorten(topic)
  const opening = echo === '' ? greeting : `${greeting} You wrote: "${echo}".`
  const length = tokens ?? countTokens(opening) + 12 + Math.floor(chance() * 70)
  const text = fill(opening, sentences, length, seed)
  return tokens === undefined ? text : cutToTokens(text, tokens)
}

export function composeThoughts(seed: number, tokens: number): string {
  return cutToTokens(fill('', thoughts, tokens, seed), tokens)
}

function fill(opening: string, bank: readonly string[], tokens: number, seed: number): string {
  const parts = opening === '' ? [] : [opening]
  let bytes = opening.length
  for (let at = seed % bank.length; bytes < tokens * bytesPerToken; at += 1) {
    const sentence = bank[at % bank.length] ?? ''
    parts.push(sentence)
    bytes += sentence.length + 1
  }
  return parts.join(' ')
}

/** The topic on one line; it may be megabytes long, its echo may not. */
function shorten(topic: string): string {
  const line = topic.slice(0, echoCharactersMax * 4).replace(/\s+/g, ' ')
  const characters = Array.from(line.trim())
  const isShort = characters.length <= echoCharactersMax
  return isShort ? characters.join('') : `${characters.slice(0, echoCharactersMax).join('')}…`
}
