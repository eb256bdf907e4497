/** Up to here parsing the text at once and counting its names is quicker than walking it: 9 µs instead of 11 for a reply of 2 kB. */
const SMALL_BYTES = 4096
const [SPACE, QUOTE, COLON, BACKSLASH, OPENING_BRACE, CLOSING_BRACE] = [0x20, 0x22, 0x3a, 0x5c, 0x7b, 0x7d]

/** A JSON text that was parsed at once. */
export interface SmallJson {
  readonly text: string
  readonly value: unknown
}

/**
 * Parses an object of few bytes that is whole in this chunk. Null for everything that has to be looked at more closely:
 * what is no object, is not whole, is no JSON, has escaped letters, or may name a member twice.
 */
export function parseSmall(chunk: Buffer): SmallJson | null {
  if (chunk.length > SMALL_BYTES || !seemsWhole(chunk)) return null
  const text = chunk.toString('utf8')
  if (mayConfuse(text)) return null
  try {
    const value: unknown = JSON.parse(text)
    // The text has at least the names of its value, and at most as many as are counted: if these are the same, none is
    // given twice.
    return countNames(value) === namesAtMost(chunk) ? { text, value } : null
  } catch {
    return null
  }
}

function seemsWhole(chunk: Buffer): boolean {
  let last = chunk.length - 1
  while (last > 0 && (chunk[last] as number) <= SPACE) last--
  return chunk[0] === OPENING_BRACE && chunk[last] === CLOSING_BRACE
}

/**
 * Whether a name may be written with escapes. V8 (13.6) takes such a name for one with a backslash that stood in the same
 * place before: the second of `{"\"":0,"\"":0}`, once it has seen `{"\"":0,"\\":0}`. No upstream is known to write a
 * letter that way.
 */
function mayConfuse(text: string): boolean {
  return text.includes('\\u00')
}

function countNames(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  let names = 0
  if (Array.isArray(value)) {
    for (const element of value) names += countNames(element)
    return names
  }
  // Whatever JSON.parse makes has no other names than its own.
  for (const name in value) names += 1 + countNames((value as Readonly<Record<string, unknown>>)[name])
  return names
}

/**
 * How many colons stand behind a quote that may close a name, white space between them or not. Every name has one; so
 * does a string that begins with a colon. A quote behind a single backslash is within a string, as in the arguments of
 * a tool.
 */
function namesAtMost(bytes: Buffer): number {
  let names = 0
  for (let i = bytes.indexOf(COLON); i > 0; i = bytes.indexOf(COLON, i + 1)) {
    let before = i - 1
    while ((bytes[before] as number) <= SPACE) before--
    if (bytes[before] !== QUOTE) continue
    if (bytes[before - 1] !== BACKSLASH || bytes[before - 2] === BACKSLASH) names++
  }
  return names
}
