/**
 * Header lines as they came: a flat array of name, value, name, value, in order, with case and duplicates.
 * A gateway that must not change what it passes cannot use a map of lower-cased names.
 */
export type RawHeaders = readonly string[]

/** All values of a header, in order. `name` is lower case. */
export function valuesOf(headers: RawHeaders, name: string): string[] {
  const values: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    const candidate = headers[i] ?? ''
    if (candidate.length === name.length && candidate.toLowerCase() === name)
      values.push(headers[i + 1] ?? '')
  }
  return values
}

export function firstValue(headers: RawHeaders, name: string): string | undefined {
  for (let i = 0; i < headers.length; i += 2) {
    const candidate = headers[i] ?? ''
    if (candidate.length === name.length && candidate.toLowerCase() === name) return headers[i + 1] ?? ''
  }
  return undefined
}

export function hasHeader(headers: RawHeaders, name: string): boolean {
  return firstValue(headers, name) !== undefined
}

/** The members of a comma-separated header such as `Connection`, in lower case, over all its lines. */
export function tokensOf(headers: RawHeaders, name: string): string[] {
  return valuesOf(headers, name)
    .flatMap((value) => value.split(','))
    .map((token) => token.trim().toLowerCase())
    .filter((token) => token !== '')
}
