/** Names of ASCII characters that can be looked for in bytes, without making a string of every name that comes by. */
export class NameSet {
  readonly #names: ReadonlySet<string>
  /** By length; most names that come by have a length that none of these has. */
  readonly #byLength: readonly (readonly Buffer[])[]

  constructor(names: Iterable<string>) {
    const byLength: Buffer[][] = []
    for (const name of names) {
      for (let length = byLength.length; length <= name.length; length++) byLength.push([])
      byLength[name.length]?.push(Buffer.from(name))
    }
    this.#names = new Set(names)
    this.#byLength = byLength
  }

  has(name: string): boolean {
    return this.#names.has(name)
  }

  hasBytes(chunk: Buffer, from: number, to: number): boolean {
    const candidates = this.#byLength[to - from]
    if (candidates === undefined) return false
    for (let k = 0; k < candidates.length; k++) {
      const name = candidates[k] as Buffer
      let i = 0
      while (i < name.length && chunk[from + i] === name[i]) i++
      if (i === name.length) return true
    }
    return false
  }
}

export interface CondenseRules {
  /** Members of the outermost object that matter. The values of all others become null. */
  readonly keep: NameSet
  /** Members of objects below it whose values do not matter, wherever they are, and become null. */
  readonly drop: NameSet
}

/** How many containers may be open. A member with more becomes null. */
export const DEPTH_MAX = 256

export interface CondenseLimits {
  /** Strings are kept whole until they add up to this; from then on only their first bytes. */
  readonly textBytesMax: number
  readonly longStringBytesMax: number
  /** A member of the outermost object, or of an object that is one, which is longer even so becomes null. */
  readonly memberBytesMax: number
  readonly documentBytesMax: number
}

export const CONDENSE_LIMITS: CondenseLimits = {
  textBytesMax: 128 * 1024,
  longStringBytesMax: 256,
  memberBytesMax: 1024 * 1024,
  documentBytesMax: 4 * 1024 * 1024,
}

export type Condensed =
  | {
      readonly kind: 'json'
      readonly text: string
      /** How many member names `text` has: more than its value has when some are given twice. */
      readonly names: number
      /** Something that may matter was too long and is null now. */
      readonly overflow: boolean
    }
  | { readonly kind: 'too_large' }

/** The copy without its long strings, and with them: which is only looked into where text has to be counted. */
export interface TwoCopies {
  readonly brief: Condensed
  readonly whole: Condensed
}

/** A JSON text that was read, as far as it matters. */
export interface JsonDocument {
  readonly value: unknown
  /** Something that may matter was too long to be read and is null here. */
  readonly overflow: boolean
  /** Some object names a member twice: parsers differ on which one counts, `value` has the last. */
  repeatsNames(): boolean
}

export type UnreadableDocument = 'too_large' | 'not_json'

export function readDocument(condensed: Condensed): JsonDocument | UnreadableDocument {
  if (condensed.kind === 'too_large') return 'too_large'
  let value: unknown
  try {
    // A byte order mark is no JSON, but clients skip it.
    value = JSON.parse(condensed.text.charCodeAt(0) === 0xfeff ? condensed.text.slice(1) : condensed.text)
  } catch {
    return 'not_json'
  }
  return {
    value,
    overflow: condensed.overflow,
    repeatsNames: () => countNames(value) < condensed.names,
  }
}

/** The depth is that of the condensed text, which is limited. */
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

/** Less than what any of the condenser's limits begins at, but for those of names and of depth. */
const SMALL_BYTES = 4096
/** The condenser cuts names of over 256 bytes; a character takes six of them at most, where it is escaped. */
const NAME_CHARS_MAX = 42
const [SPACE, QUOTE, COLON, BACKSLASH, OPENING_BRACE, CLOSING_BRACE] = [0x20, 0x22, 0x3a, 0x5c, 0x7b, 0x7d]

/** A JSON text that was read as it is. */
export interface SmallDocument {
  readonly text: string
  readonly document: JsonDocument
}

/**
 * Reads an object of few bytes that is whole in this chunk without condensing it first, which would take as long again
 * as parsing it; the document is the same. Null for everything that has to be looked at more closely: what is no object,
 * is not whole, is no JSON, is too deep, has long names or escaped letters, or may name a member twice.
 */
export function readSmall(chunk: Buffer, rules: CondenseRules): SmallDocument | null {
  if (chunk.length > SMALL_BYTES || !seemsWhole(chunk)) return null
  const text = chunk.toString('utf8')
  if (mayConfuse(text)) return null
  let value: Record<string, unknown>
  try {
    value = JSON.parse(text) as Record<string, unknown>
  } catch {
    return null
  }
  // The text has at least the names of its value, and at most as many as are counted: if these are the same, none is
  // given twice.
  if (condenseAndCount(value, rules, 1) !== namesAtMost(chunk)) return null
  return { text, document: { value, overflow: false, repeatsNames: () => false } }
}

function seemsWhole(chunk: Buffer): boolean {
  let last = chunk.length - 1
  while (last > 0 && (chunk[last] as number) <= SPACE) last--
  return chunk[0] === OPENING_BRACE && chunk[last] === CLOSING_BRACE
}

/**
 * Whether a name that matters may be written with escapes. V8 (13.6) takes such a name for one with a backslash that
 * stood in the same place before: the second of `{"\"":0,"\"":0}`, once it has seen `{"\"":0,"\\":0}`. The condenser
 * keeps from it what does not matter; no upstream is known to write a letter that way.
 */
function mayConfuse(text: string): boolean {
  return text.includes('\\u00')
}

/** Makes null of what does not matter. Answers how many names there are; more than any text has, where it must not be read. */
function condenseAndCount(value: object, rules: CondenseRules, depth: number): number {
  if (depth > DEPTH_MAX) return Infinity
  let names = 0
  if (Array.isArray(value)) {
    for (const element of value)
      if (isContainer(element)) names += condenseAndCount(element, rules, depth + 1)
    return names
  }
  const object = value as Record<string, unknown>
  // Whatever JSON.parse makes has no other names than its own.
  for (const name in object) {
    const member = object[name]
    names += name.length > NAME_CHARS_MAX ? Infinity : 1
    if (isContainer(member)) names += condenseAndCount(member, rules, depth + 1)
    const matters = depth === 1 ? rules.keep.has(name) : !rules.drop.has(name)
    if (!matters) object[name] = null
  }
  return names
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null
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
