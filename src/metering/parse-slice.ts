const [QUOTE, BACKSLASH, COLON] = [0x22, 0x5c, 0x3a]
const [OPEN_BRACE, CLOSE_BRACE] = [0x7b, 0x7d]
const BLANKS = ' \t\r\n'
/** A name of letters and digits, which no encoder escapes. */
const WORD = /^\w+$/

/** The names that an object has twice, escapes decoded, in a valid JSON text: JSON.parse silently uses the last one. */
export function namesTwice(text: string): ReadonlySet<string> {
  return findNames(text, false)
}

/**
 * The names that an object has twice, and escaped words: after parsing `{"\"":0,"\\":0}`, V8 (13.6) misreads the second
 * name of `{"\"":0,"\"":0}`, so `"\u006dodel"` can hide from JSON.parse.
 */
export function oddNames(text: string): ReadonlySet<string> {
  return findNames(text, true)
}

function findNames(text: string, withEscapedWords: boolean): ReadonlySet<string> {
  const found = new Set<string>()
  const open: Set<string>[] = []
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === OPEN_BRACE) open.push(new Set())
    else if (code === CLOSE_BRACE) open.pop()
    if (code !== QUOTE) continue
    const start = i
    i = closingQuote(text, start + 1)
    let colon = i + 1
    while (colon < text.length && BLANKS.includes(text.charAt(colon))) colon++
    if (text.charCodeAt(colon) !== COLON) continue
    const written = text.slice(start + 1, i)
    const isEscaped = written.includes('\\')
    const name = isEscaped ? (JSON.parse(`"${written}"`) as string) : written
    const names = open.at(-1)
    if (names?.has(name) === true || (withEscapedWords && isEscaped && WORD.test(name))) found.add(name)
    names?.add(name)
  }
  return found
}

/** Names and other short strings are shorter than this. */
const SHORT_CHARS = 32

/**
 * The index of the quote that ends a string. A native search is faster than a loop for long strings, and slower for
 * short ones.
 */
function closingQuote(text: string, from: number): number {
  let i = from
  for (; i < from + SHORT_CHARS; i++) {
    const code = text.charCodeAt(i)
    if (code === QUOTE) return i
    if (code === BACKSLASH) i++
  }
  for (let quote = text.indexOf('"', i); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let unescaped = quote
    while (unescaped > i && text.charCodeAt(unescaped - 1) === BACKSLASH) unescaped--
    if ((quote - unescaped) % 2 === 0) return quote
  }
  return text.length
}

/** The value of a string; null if it has a control character. Few strings have escapes. */
export function parseString(text: string): string | null {
  if (!text.includes('\\')) return text.slice(1, -1)
  try {
    return JSON.parse(text) as string
  } catch {
    return null
  }
}
