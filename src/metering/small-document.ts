import { type CondenseRules, DEPTH_MAX } from './condensed.ts'
import type { JsonDocument } from './json-document.ts'

/** Longer texts have strings that are not worth parsing, and are condensed first. */
const SMALL_BYTES = 4096
const [QUOTE, COLON, OPENING_BRACE, CLOSING_BRACE] = [0x22, 0x3a, 0x7b, 0x7d]
const SPACE = 0x20

/** A JSON text that was read as it is. */
export interface SmallDocument {
  readonly text: string
  readonly document: JsonDocument
}

/**
 * Reads an object of few bytes that is whole in this chunk without condensing it first, which would take as long again
 * as parsing it; the document is the same. Null for everything that has to be looked at more closely: what is no object,
 * is not whole, is no JSON, is too deep, or may name a member twice.
 */
export function readSmall(chunk: Buffer, rules: CondenseRules): SmallDocument | null {
  if (chunk.length > SMALL_BYTES || !seemsWhole(chunk)) return null
  const text = chunk.toString('utf8')
  let value: Container
  try {
    value = JSON.parse(text) as Container
  } catch {
    return null
  }
  // The text has at least as many names as its value. Where it has no more at most, none is given twice.
  if (condense(value, rules, 1) !== countNamesAtMost(chunk)) return null
  return { text, document: { value, overflow: false, repeatsNames: () => false } }
}

function seemsWhole(chunk: Buffer): boolean {
  let last = chunk.length - 1
  while (last > 0 && (chunk[last] as number) <= SPACE) last--
  return chunk[0] === OPENING_BRACE && chunk[last] === CLOSING_BRACE
}

type Container = Record<string, unknown> | unknown[]

function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null
}

/** Makes null of what does not matter, and counts all names there are. Where it is too deep, these are without end. */
function condense(value: Container, rules: CondenseRules, depth: number): number {
  if (depth > DEPTH_MAX) return Infinity
  let names = 0
  if (Array.isArray(value)) {
    for (const element of value) if (isContainer(element)) names += condense(element, rules, depth + 1)
    return names
  }
  // Whatever JSON.parse makes has no other names than its own.
  for (const name in value) {
    const member = value[name]
    names += 1
    if (isContainer(member)) names += condense(member, rules, depth + 1)
    const matters = depth === 1 ? rules.keep.has(name) : !rules.drop.has(name)
    if (!matters) value[name] = null
  }
  return names
}

/**
 * How many colons stand behind a quote, white space between them or not. So does the colon behind every name; one more
 * does where a string begins with a colon, or has a quote before one.
 */
function countNamesAtMost(bytes: Buffer): number {
  let names = 0
  for (let i = bytes.indexOf(COLON); i > 0; i = bytes.indexOf(COLON, i + 1)) {
    let before = i - 1
    while ((bytes[before] as number) <= SPACE) before--
    if (bytes[before] === QUOTE) names++
  }
  return names
}
