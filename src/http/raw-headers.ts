/**
 * Header lines as they came: a flat array of name, value, name, value, in order, with case and duplicates.
 * A gateway that must not change what it passes cannot use a map of lower-cased names.
 */
export type RawHeaders = readonly string[]

/** As a bit, what makes an ASCII letter a small one. */
const SMALL = 0x20

/**
 * Whether a line has this name, which is lower case and begins with a letter. Nearly every other one has another length
 * or another first letter, and need not be lower-cased to be told apart.
 */
export function isNamed(line: string, name: string): boolean {
  return (
    line.length === name.length &&
    (line.charCodeAt(0) | SMALL) === name.charCodeAt(0) &&
    (line === name || line.toLowerCase() === name)
  )
}

/** All values of a header, in order. `name` is lower case here and below, and begins with a letter. */
export function valuesOf(headers: RawHeaders, name: string): string[] {
  const values: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    if (isNamed(headers[i] ?? '', name)) values.push(headers[i + 1] ?? '')
  }
  return values
}

export function firstValue(headers: RawHeaders, name: string): string | undefined {
  for (let i = 0; i < headers.length; i += 2) {
    if (isNamed(headers[i] ?? '', name)) return headers[i + 1] ?? ''
  }
  return undefined
}

export function hasHeader(headers: RawHeaders, name: string): boolean {
  return firstValue(headers, name) !== undefined
}

/** The members of a comma-separated header such as `Connection`, in lower case, over all its lines. */
export function tokensOf(headers: RawHeaders, name: string): string[] {
  const tokens: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    if (isNamed(headers[i] ?? '', name)) addTokens(headers[i + 1] ?? '', tokens)
  }
  return tokens
}

/** Of one line. */
export function addTokens(value: string, tokens: string[]): void {
  for (let start = 0; start <= value.length; ) {
    const commaAt = value.indexOf(',', start)
    const end = commaAt === -1 ? value.length : commaAt
    const token = value.slice(start, end).trim().toLowerCase()
    if (token !== '') tokens.push(token)
    start = end + 1
  }
}
