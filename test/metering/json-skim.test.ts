import assert from 'node:assert/strict'
import { isUtf8 } from 'node:buffer'
import fc from 'fast-check'
import {
  eachShape,
  listShape,
  objectShape,
  SCALAR,
  type Shape,
  SIZE,
  Sized,
  SKIM_LIMITS,
  type Skimmed,
  type SkimmedElement,
  UNREAD,
  VALUE,
} from '../../src/metering/json-shape.ts'
import { JsonSkim, skimWhole } from '../../src/metering/json-skim.ts'
import { runs } from '../support/scale.ts'
import { test } from '../support/suite.ts'
import { documents, nearDocuments } from './json-documents.ts'
import { inPieces, mutate, mutations, pieceSizes } from './slices.ts'

/** A shape as plain data, from which the test derives its expectations independently. */
type Spec =
  | 'value'
  | 'scalar'
  | 'size'
  | { readonly [name: string]: Spec }
  | readonly [each: Spec]
  | readonly ['list', Spec]

const SPEC: { readonly [name: string]: Spec } = {
  model: 'value',
  stream: 'scalar',
  max_tokens: 'value',
  stream_options: { model: 'value', n: 'size', tools: { model: 'scalar' } },
  a: ['list', { model: ['list', 'size'], n: 'scalar', tools: 'value' }],
  tools: [{ model: 'value', n: { n: 'value' } }],
  n: ['value'],
  'kö😀': 'value',
}

function shapeOf(spec: Spec): Shape {
  if (spec === 'value') return VALUE
  if (spec === 'scalar') return SCALAR
  if (spec === 'size') return SIZE
  if (isList(spec)) return listShape(shapeOf(spec[1]))
  if (Array.isArray(spec)) return eachShape(shapeOf(spec[0] as Spec))
  return objectShape(Object.fromEntries(Object.entries(spec).map(([name, inner]) => [name, shapeOf(inner)])))
}

function isList(spec: Spec): spec is readonly ['list', Spec] {
  return spec[0] === 'list'
}

const SHAPE = shapeOf(SPEC)

/** The value that a skim should return, and the elements that it should pass on. */
function expected(value: unknown, spec: Spec, elements: unknown[]): unknown {
  if (value === null || spec === 'value') return value
  if (Array.isArray(value) && isList(spec))
    return value.map((element) => expected(element, spec[1], elements))
  if (Array.isArray(value) && Array.isArray(spec)) {
    for (const element of value) elements.push(expected(element, spec[0] as Spec, elements))
    return UNREAD
  }
  if (isObject(value) && typeof spec === 'object' && !Array.isArray(spec)) {
    const read: Record<string, unknown> = {}
    for (const [name, inner] of Object.entries(value))
      if (Object.hasOwn(spec, name))
        read[name] = expected(inner, (spec as Readonly<Record<string, Spec>>)[name] as Spec, elements)
    return read
  }
  return typeof value !== 'object' ? value : spec === 'size' ? new Sized(0, false) : UNREAD
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

interface Outcome {
  readonly skimmed: Skimmed
  readonly elements: readonly SkimmedElement[]
}

function skimAll(bytes: Uint8Array, sizes: readonly number[] | null, shape = SHAPE): Outcome {
  const elements: SkimmedElement[] = []
  const skim = new JsonSkim(shape, { onElement: (element) => elements.push(element) })
  return { skimmed: inPieces(skim, bytes, sizes ?? [Math.max(1, bytes.length)]), elements }
}

/** V8 reads some escaped names as others (see json-tokens.ts), so letters are not escaped here. */
function parse(bytes: Uint8Array): { readonly value: unknown } | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    JSON.parse(text)
    const plain = text.replace(/\\(?:u([0-9a-f]{4})|.)/gi, (written, digits: string | undefined) => {
      const letter = String.fromCharCode(Number.parseInt(digits ?? '0', 16))
      return /\w|[^\x00-\x7f\ud800-\udfff]/.test(letter) ? letter : written
    })
    return { value: JSON.parse(plain) }
  } catch {
    return null
  }
}

/** Strings that are too long, or contain control characters, may be UNREAD: then nothing else is known. */
function agree(found: unknown, wanted: unknown): boolean {
  if (found === UNREAD && typeof wanted !== 'object') return true
  if (found instanceof Sized && (typeof wanted === 'string' || wanted instanceof Sized)) return true
  if (Array.isArray(found) && Array.isArray(wanted) && found.length === wanted.length)
    return found.every((element, i) => agree(element, wanted[i]))
  if (!isObject(found) || !isObject(wanted)) {
    assert.deepEqual(found, wanted)
    return true
  }
  assert.deepEqual(Object.keys(found).sort(), Object.keys(wanted).sort())
  return Object.entries(found).every(([name, value]) => agree(value, wanted[name]))
}

function assertAgreesWithJsonParse({ skimmed, elements }: Outcome, bytes: Buffer): void {
  const parsed = parse(bytes)
  if (skimmed.kind === 'unreadable') {
    if (skimmed.reason === 'ambiguous_name' || skimmed.reason === 'name_too_long' || parsed === null) return
    assert(!isObject(parsed.value), `refused as ${skimmed.reason}: ${bytes.toString()}`)
    assert.equal(skimmed.reason, 'not_an_object')
    return
  }
  const lenient = parsed ?? parse(bytes.map((byte) => (byte < 0x20 ? 0x20 : byte)))
  assert(lenient !== null && isObject(lenient.value), `accepted: ${bytes.toString()}`)
  assert.equal(bytes.toString('latin1', skimmed.objectEnd).trim(), '}')
  // JSON.parse takes the last of duplicate members.
  if (skimmed.duplicates.length > 0 || parsed === null) return
  const wanted: unknown[] = []
  agree(skimmed.value, expected(lenient.value, SPEC, wanted))
  assert.equal(elements.length, wanted.length)
  for (const [i, { value }] of elements.entries()) agree(value, wanted[i])
  for (const [name, { start, end }] of skimmed.spans)
    assert.deepEqual(JSON.parse(bytes.toString('utf8', start, end)), lenient.value[name])
}

function assertSkims(bytes: Buffer, sizes: readonly number[]): void {
  const outcome = skimAll(bytes, null)
  assertAgreesWithJsonParse(outcome, bytes)
  for (const cut of [sizes, [1]]) {
    const other = skimAll(bytes, cut)
    // A text with several faults is refused for the first one found.
    if (isUtf8(bytes)) assert.deepEqual(other, outcome)
    else assert.equal(other.skimmed.kind, outcome.skimmed.kind)
  }
}

test('the members of the shape are read from any document, in any chunks', () => {
  fc.assert(
    fc.property(documents, pieceSizes, (text, sizes) => assertSkims(Buffer.from(text), sizes)),
    { numRuns: runs(1200) },
  )
})

test('a document with changed bytes or tokens is read as JSON.parse reads it, or refused', () => {
  fc.assert(
    fc.property(documents, mutations, pieceSizes, (text, changes, sizes) =>
      assertSkims(mutate(Buffer.from(text), changes), sizes),
    ),
    { numRuns: runs(1200) },
  )
  fc.assert(
    fc.property(nearDocuments, pieceSizes, (text, sizes) => assertSkims(Buffer.from(text), sizes)),
    { numRuns: runs(3000) },
  )
})

function read(text: string, shape = SHAPE): Extract<Skimmed, { kind: 'object' }> {
  const skimmed = skimWhole(Buffer.from(text), shape)
  assert(skimmed.kind === 'object', JSON.stringify(skimmed))
  return skimmed
}

test('duplicate members are reported at every level, including within values', () => {
  assert.deepEqual(read('{"model":1,"\\u006dodel":2}').duplicates, ['model'])
  assert.deepEqual(read('{"stream_options":{"tools":{"model":"a","model":"b"}}}').duplicates, ['model'])
  assert.deepEqual(read('{"tools":[{"n":{"n":1,"n":2}}]}').duplicates, ['n'])
  assert.deepEqual(read('{"a":{"model":1,"model":2}}').duplicates, [])
  assert.deepEqual(read('{"model":[{"a":1,"a":{"b":1}}]}').nestedDuplicates, ['a'])
  assert.deepEqual(read('{"model":{"a":"\\",\\"a\\":","b":{"a":[]}}}').nestedDuplicates, [])
})

test('an escaped name is read as JSON.parse reads it', () => {
  const hidden = '{"max_tokens":[{"\\\\u006dodel":"a"},{"\\u006dodel":"b"}]}'
  assert.deepEqual(read(hidden).nestedDuplicates, ['model'])
})

for (const name of ['Model', 'ſtream', 'max_to\u212aens', 'model\\u0000', 'mod\\ud800el'])
  test(`the ambiguous name ${name} is refused`, () => {
    const skimmed = skimWhole(Buffer.from(`{"${name}":1}`), SHAPE)
    assert.equal(skimmed.kind === 'unreadable' && skimmed.reason, 'ambiguous_name')
  })

test('overlong values are not read, and the rest is', () => {
  const long = 'x'.repeat(SKIM_LIMITS.copiedBytesMax / 2)
  const { value } = read(`{"model":["${long}"],"max_tokens":["${long}"],"kö😀":["c"],"stream":"${long}"}`)
  assert.deepEqual(value, { model: [long], max_tokens: UNREAD, 'kö😀': ['c'], stream: UNREAD })
  assert.equal(skimWhole(Buffer.from(`{"${long}":1}`), SHAPE).kind, 'unreadable')
  assert.equal(skimWhole(Buffer.from(`${'['.repeat(600)}`), SHAPE).kind, 'unreadable')
})

test('an overlong or non-scalar value has its size as written', () => {
  const shape = objectShape({ a: SIZE, b: SIZE, c: SIZE, d: SIZE, e: SIZE })
  const long = '\\n'.repeat(300)
  const { value } = read(`{"a":"${long}","b":{"x":[1, 2]},"c":"short","d":null,"e":7}`, shape)
  assert.deepEqual(value, { a: new Sized(600, true), b: new Sized(12, false), c: 'short', d: null, e: 7 })
})

test('an overlong list keeps its beginning and everything after it', () => {
  const shape = objectShape({ list: listShape(objectShape({ n: SCALAR })), model: VALUE })
  const list = Array.from({ length: SKIM_LIMITS.listedMax + 5 }, (_, n) => `{"n":${n}}`)
  const { value, overflow } = read(`{"list":[${list.join()}],"model":"m"}`, shape)
  assert.equal((value['list'] as readonly unknown[]).length, SKIM_LIMITS.listedMax)
  assert.deepEqual([value['model'], overflow], ['m', true])
  assert.equal(read('{"list":[{"n":1}]}', shape).overflow, false)
})

/** Texts that cost a careless reader far more than their length. */
const ODD_PARTS = [
  '"\\u0069d",',
  `"${'\\u0061'.repeat(20)}",`,
  `{"${'\\u0061'.repeat(10)}":"${'\\/'.repeat(20)}"},`,
  '{"\\u0069":0},',
  '"\\n",',
  '"",',
  '[[]],',
  '0,',
  '-1.5e9,',
  '"\\\\\\"",',
  '"é",',
  '{},',
  '{"a":0},',
  '{"a":{"a":{"a":0}}},',
  '{"a":"\\\\\\\\"},',
  '{"a":0,"a":0},',
]

test('the work per byte has a constant bound, for any bytes', () => {
  for (const part of ODD_PARTS)
    for (const [place, count] of [
      ['a', 30_000],
      ['tools', 30_000],
      ['input', 30_000],
      ['tools', 15_000],
    ] as const) {
      const shape = objectShape({ tools: VALUE, input: eachShape(objectShape({ type: SCALAR })) })
      const body = Buffer.from(`{"${place}":[${part.repeat(Math.min(count, 400_000 / part.length))}0]}`)
      const skim = new JsonSkim(shape, { onElement: () => {} })
      for (let at = 0; at < body.length; at += 16_384) skim.write(body.subarray(at, at + 16_384))
      const skimmed = skim.end()
      assert.ok(skimmed.kind === 'object' || skimmed.reason === 'ambiguous_name', part)
      assert.ok(skim.work <= 8 * body.length, `${part} in ${place}: ${skim.work / body.length}`)
    }
})

test('a body with more escaped names than any API uses is refused early', () => {
  const skimmedWith = (names: number) =>
    skimWhole(
      Buffer.from(`{${Array.from({ length: names }, () => '"\\u0078\\u0079":0').join()}}`),
      objectShape({ model: VALUE }),
    )
  assert.equal(skimmedWith(1_000).kind, 'object')
  const refused = skimmedWith(1_001)
  assert.equal(refused.kind === 'unreadable' && refused.reason, 'ambiguous_name')
})
