import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Picked } from '../../src/metering/json-place.ts'
import type { JsonScan } from '../../src/metering/json-scan.ts'
import { JsonWalker } from '../../src/metering/json-walker.ts'
import { test } from '../support/suite.ts'
import { documents, nearDocuments } from './json-documents.ts'
import { expectedPick, parseAll, placeOf, type Spec } from './picked-reference.ts'
import { inPieces, mutate, mutations, pieceSizes } from './slices.ts'

/** Names of the generated documents, at every depth, with text, objects and lists of each kind below them. */
const inner: Spec = {
  members: { model: 'text', n: { members: {} }, a: 'text' },
  list: ['kept', { members: { model: 'text', tools: { list: ['kept', 'text'] } }, list: ['kept', 'text'] }],
}
const SPEC: Spec = {
  members: {
    model: inner,
    stream: { list: ['streamed', inner] },
    max_tokens: 'text',
    stream_options: { members: { stream_options: inner, __proto__x: 'text' } },
    tools: { list: ['sparse', inner] },
    n: inner,
    a: { members: { model: inner, n: inner, a: inner }, list: ['sparse', inner] },
    'kö😀': 'text',
  },
}
const PLACE = placeOf(SPEC)
/** The documents here have long names and strings; how long those may be has tests of its own. */
const LIMITS = { nameBytesMax: 64 * 1024, stringBytesMax: 64 * 1024 }

interface Seen {
  readonly scan: JsonScan
  readonly streamed: readonly Picked[]
}

function pickPieces(bytes: Uint8Array, sizes: readonly number[]): Seen {
  const streamed: Picked[] = []
  const walker = new JsonWalker(PLACE, { limits: LIMITS, onElement: (element) => streamed.push(element) })
  const scan = inPieces(walker, bytes, sizes)
  return { scan, streamed: scan.kind === 'object' ? streamed : [] }
}

function parse(bytes: Uint8Array): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    JSON.parse(text)
    return text
  } catch {
    return null
  }
}

/** A text that JSON.parse accepts gives the reference's picks; another text is refused, control characters apart. */
function assertAsReference({ scan, streamed }: Seen, bytes: Buffer): void {
  const strict = parse(bytes)
  const text = strict ?? parse(bytes.map((byte) => (byte < 0x20 ? 0x20 : byte)))
  if (scan.kind === 'unreadable' && scan.reason !== 'ambiguous_name') {
    const isObject = strict !== null && typeof parseAll(strict) === 'object' && strict.trim().startsWith('{')
    assert(!isObject, `refused as ${scan.reason}: ${bytes.toString()}`)
    return
  }
  if (text === null) {
    // The walker may refuse the text for an ambiguous name that stands before the fault.
    assert.equal(scan.kind, 'unreadable', `accepted: ${bytes.toString()}`)
    return
  }
  const expected = expectedPick(parseAll(text), SPEC)
  assert.equal(scan.kind === 'unreadable', expected.ambiguous)
  if (scan.kind === 'unreadable') return
  assert.deepEqual(scan.picked.value, expected.value)
  assert.deepEqual(streamed, expected.streamed)
  assert.deepEqual([...scan.picked.duplicates].sort(), [...expected.duplicates].sort())
}

test('what is picked of any document is what JSON.parse finds there, however the document is cut', () => {
  fc.assert(
    fc.property(documents, pieceSizes, (document, sizes) => {
      const bytes = Buffer.from(document.text)
      const whole = pickPieces(bytes, [bytes.length])
      assertAsReference(whole, bytes)
      assert.deepEqual(pickPieces(bytes, sizes), whole)
      assert.deepEqual(pickPieces(bytes, [1]), whole)
    }),
    { numRuns: 1500 },
  )
})

test('a document with a few bytes changed is picked from as JSON.parse reads it, or refused, and cuts change nothing', () => {
  fc.assert(
    fc.property(documents, mutations, pieceSizes, (document, changes, sizes) => {
      const bytes = mutate(Buffer.from(document.text), changes)
      if (bytes.length === 0) return
      const whole = pickPieces(bytes, [bytes.length])
      assertAsReference(whole, bytes)
      assert.deepEqual(pickPieces(bytes, sizes), whole)
    }),
    { numRuns: 3000 },
  )
})

test('a document with a few tokens changed is picked from as JSON.parse reads it, or refused, and cuts change nothing', () => {
  fc.assert(
    fc.property(nearDocuments, pieceSizes, (text, sizes) => {
      const bytes = Buffer.from(text)
      if (bytes.length === 0) return
      const whole = pickPieces(bytes, [bytes.length])
      assertAsReference(whole, bytes)
      assert.deepEqual(pickPieces(bytes, sizes), whole)
    }),
    { numRuns: 4000 },
  )
})
