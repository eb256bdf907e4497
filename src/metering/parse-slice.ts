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

/** Loops over characters: a native search per quote takes three times as long. */
function findNames(text: string, withEscapedWords: boolean): ReadonlySet<string> {
  const found = new Set<string>()
  const open: Set<string>[] = []
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === OPEN_BRACE) open.push(new Set())
    else if (code === CLOSE_BRACE) open.pop()
    if (code !== QUOTE) continue
    const start = i
    let isEscaped = false
    for (let inside = text.charCodeAt(++i); inside !== QUOTE; inside = text.charCodeAt(++i)) {
      if (inside !== BACKSLASH) continue
      isEscaped = true
      i++
    }
    let colon = i + 1
    while (colon < text.length && BLANKS.includes(text.charAt(colon))) colon++
    if (text.charCodeAt(colon) !== COLON) continue
    const name = isEscaped ? (JSON.parse(text.slice(start, i + 1)) as string) : text.slice(start + 1, i)
    const names = open.at(-1)
    if (names?.has(name) === true || (withEscapedWords && isEscaped && WORD.test(name))) found.add(name)
    names?.add(name)
  }
  return found
}

/** Few strings have escapes. Null for a string with a control character. */
export function parseString(text: string): string | null {
  if (!text.includes('\\')) return text.slice(1, -1)
  try {
    return JSON.parse(text) as string
  } catch {
    return null
  }
}
