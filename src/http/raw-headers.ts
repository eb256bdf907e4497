/** Header lines as received: name, value, name, value …, with order, case and duplicates. */
export type RawHeaders = readonly string[]

/** Copies a string that is retained for long. A slice would retain the whole head. */
export function copyText(part: string): string {
  return Buffer.from(part, 'latin1').toString('latin1')
}

/** Serialises header lines. Throws if a value has a line break, which would begin another line. */
export function serialiseHeaders(lines: readonly string[]): string {
  let text = ''
  for (let i = 0; i < lines.length; i += 2) {
    const line = `${lines[i] ?? ''}: ${lines[i + 1] ?? ''}`
    if (UNSENDABLE.test(line)) throw new Error(`a header line cannot be sent: ${lines[i]}`)
    text += `${line}\r\n`
  }
  return text
}

/** Headers are sent as Latin-1. Characters above 0xff would lose their upper byte, and could become line breaks. */
const UNSENDABLE = /[^\t\x20-\x7e\x80-\xff]/

const LOWER_CASE_BIT = 0x20

/** Whether a line has this lower-case name. Nearly all others differ in length or first letter. */
export function isNamed(line: string, name: string): boolean {
  return (
    line.length === name.length &&
    (line.charCodeAt(0) | LOWER_CASE_BIT) === name.charCodeAt(0) &&
    (line === name || line.toLowerCase() === name)
  )
}

/** Here and in the functions below, `name` is lower case and begins with a letter. */
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

function addTokens(value: string, tokens: string[]): void {
  for (let start = 0; start <= value.length; ) {
    const commaAt = value.indexOf(',', start)
    const end = commaAt === -1 ? value.length : commaAt
    const token = value.slice(start, end).trim().toLowerCase()
    if (token !== '') tokens.push(token)
    start = end + 1
  }
}

export function weightsOf(headers: RawHeaders, name: string): ReadonlyMap<string, number> {
  const members = tokensOf(headers, name).map((token): [string, number] => {
    const [value = '', ...parameters] = token.split(';').map((part) => part.trim())
    const weight = parameters.find((parameter) => parameter.startsWith('q='))
    return [value, weight === undefined ? 1 : Number(weight.slice(2)) || 0]
  })
  // The first weight of a member counts, so insert it last.
  return new Map(members.reverse())
}

/** Whether `Accept` prefers one media type to another: by its weight, then by the more exact range. */
export function prefers(headers: RawHeaders, type: string, other: string): boolean {
  const weights = weightsOf(headers, 'accept')
  const [first, second] = [bestMatch(weights, type), bestMatch(weights, other)]
  if (first.weight !== second.weight) return first.weight > second.weight
  return first.weight > 0 && first.vagueness < second.vagueness
}

function bestMatch(weights: ReadonlyMap<string, number>, type: string) {
  const ranges = [type, `${type.split('/')[0]}/*`, '*/*']
  for (const [vagueness, range] of ranges.entries()) {
    const weight = weights.get(range)
    if (weight !== undefined) return { weight, vagueness }
  }
  return { weight: 0, vagueness: ranges.length }
}

const CODINGS = ['gzip', 'x-gzip', 'deflate', 'br', 'zstd'] as const

/** The content coding of a body; `unknown` if the gateway cannot decode it. */
export type BodyCoding = (typeof CODINGS)[number] | 'identity' | 'unknown'

export function codingOf(contentEncoding: string | undefined): BodyCoding {
  const name = (contentEncoding ?? '').trim().toLowerCase()
  if (name === '' || name === 'identity') return 'identity'
  // Do not decode a chain of codings ("gzip, gzip, …"). It multiplies the work, and no client needs it.
  return CODINGS.find((coding) => coding === name) ?? 'unknown'
}

/** `te` and `trailer` are among them, because trailers are negotiated per hop. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  ...'connection keep-alive proxy-connection proxy-authenticate te trailer'.split(' '),
  ...'transfer-encoding upgrade http2-settings'.split(' '),
])

/** Headers that a `Connection` line cannot remove, because our checks or the meaning of the request depend on them. */
const END_TO_END =
  /^(?:host|date|age|vary|etag|range|cookie|set-cookie|origin|expect|user-agent|authorization|x-api-key|api-key|x-request-id|request-id|retry-after|cache-control|content-.*|accept.*|anthropic-.*|openai-.*|x-stainless-.*|x-ratelimit-.*|idempotency-key)$/

export function isHopByHop(lowerName: string): boolean {
  return HOP_BY_HOP.has(lowerName)
}

const NOTHING: ReadonlySet<string> = new Set()

/** Further hop-by-hop headers that the `Connection` lines of a message name. Usually there are none. */
export function nominatedIn(headers: RawHeaders): ReadonlySet<string> {
  let names: string[] | null = null
  for (let i = 0; i < headers.length; i += 2) {
    if (!isNamed(headers[i] ?? '', 'connection')) continue
    const value = headers[i + 1] ?? ''
    if (value === 'keep-alive') continue
    names ??= []
    addTokens(value, names)
  }
  if (names === null) return NOTHING
  const nominated = names.filter((name) => !HOP_BY_HOP.has(name) && !END_TO_END.test(name))
  return nominated.length === 0 ? NOTHING : new Set(nominated)
}

const NAMES_MAX = 1_000
const NAME_CHARS_MAX = 64

/** What the name of a header alone decides. It is cached, because every request has the same few names. */
export function headerActions<Action>(decide: (lowerName: string) => Action) {
  const known = new Map<string, { readonly lower: string; readonly action: Action }>()
  return (name: string) => {
    const found = known.get(name)
    if (found !== undefined) return found
    const lower = name.toLowerCase()
    const decided = { lower, action: decide(lower) }
    if (known.size >= NAMES_MAX) known.clear()
    if (name.length <= NAME_CHARS_MAX) known.set(copyText(name), decided)
    return decided
  }
}
