import assert from 'node:assert/strict'
import fc from 'fast-check'
import { capturing } from '../../src/metering/json-place.ts'
import type { JsonMember, JsonScan } from '../../src/metering/json-scan.ts'
import { JsonWalker, scanJson } from '../../src/metering/json-walker.ts'
import { test } from '../support/suite.ts'
import { type Document, documents, nearDocuments, WATCHED } from './json-documents.ts'
import { inPieces, mutate, mutations, pieceSizes } from './slices.ts'

type Name = (typeof WATCHED)[number]

/** The documents here have names of a few thousand bytes; how long a name may be has a test of its own. */
const LIMITS = { nameBytesMax: 64 * 1024 }

function scanWhole(bytes: Uint8Array): JsonScan<Name> {
  return scanJson(Buffer.from(bytes), WATCHED, LIMITS)
}

function scanPieces(bytes: Uint8Array, sizes: readonly number[]): JsonScan<Name> {
  return inPieces(new JsonWalker(capturing(WATCHED), { limits: LIMITS }), bytes, sizes) as JsonScan<Name>
}

function meaning(member: JsonMember): unknown {
  if (member.kind === 'too_long') throw new Error('nothing here is as long as that')
  if (member.kind === 'null') return null
  return 'json' in member ? JSON.parse(member.json) : member.value
}

/** True for names that a server could take for a watched one; written apart from the code under test. */
function confusable(name: string): boolean {
  if ((WATCHED as readonly string[]).includes(name)) return false
  if (name.includes('\0') || /[\ud800-\udfff]/u.test(name)) return true
  return WATCHED.some((w) => new RegExp(`^${w}$`, 'iu').test(name) || w.toUpperCase() === name.toUpperCase())
}

function assertFindsWhatWasWritten(scan: JsonScan<Name>, bytes: Buffer, { members }: Document): void {
  if (members.some(({ name }) => confusable(name))) {
    assert.equal(scan.kind === 'unreadable' && scan.reason, 'ambiguous_name')
    return
  }
  assert(scan.kind === 'object', JSON.stringify(scan))
  assert.equal(scan.empty, members.length === 0)
  assert.equal(bytes.toString('latin1', scan.objectEnd).trim(), '}')
  for (const watched of WATCHED) {
    const [first, second] = members.filter(({ name }) => name === watched)
    const member = scan.members.get(watched)
    assert.equal(member !== undefined, first !== undefined, `${watched} is found where it is, and only there`)
    assert.equal(scan.duplicates.includes(watched), second !== undefined)
    if (member === undefined || first === undefined) continue
    assert.deepEqual(meaning(member), JSON.parse(first.valueText))
    assert.equal(bytes.toString('utf8', member.start, member.end), first.valueText)
    if (member.kind === 'number') assert.equal(member.raw, first.valueText)
    const named = bytes.toString('utf8', member.nameStart, member.start).trimEnd()
    assert.equal(JSON.parse(named.replace(/\s*:$/, '')), watched)
  }
}

test('every watched top-level member of any document is found, however the document is cut', () => {
  fc.assert(
    fc.property(documents, pieceSizes, (document, sizes) => {
      const bytes = Buffer.from(document.text)
      const scan = scanWhole(bytes)
      assertFindsWhatWasWritten(scan, bytes, document)
      assert.deepEqual(scanPieces(bytes, sizes), scan)
      assert.deepEqual(scanPieces(bytes, [1]), scan)
    }),
    { numRuns: 1500 },
  )
})

function parse(bytes: Uint8Array): { readonly value: unknown } | null {
  try {
    // A byte order mark is kept, so that JSON.parse sees it and refuses it.
    return { value: JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)) }
  } catch {
    return null
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * A text that JSON.parse accepts is read, except for names that parsers confuse; a text that is read is accepted by
 * JSON.parse, except for control characters in strings; and both agree on every watched member that is given once.
 */
function assertAgreesWithJsonParse(scan: JsonScan<Name>, bytes: Buffer): void {
  const parsed = parse(bytes)
  if (scan.kind === 'unreadable') {
    if (scan.reason !== 'ambiguous_name' && parsed !== null) {
      assert(!isObject(parsed.value), `refused as ${scan.reason} at ${scan.at}: ${bytes.toString()}`)
      assert.equal(scan.reason, 'not_an_object')
    }
    return
  }
  const lenient = parsed ?? parse(bytes.map((byte) => (byte < 0x20 ? 0x20 : byte)))
  assert(lenient !== null && isObject(lenient.value), `accepted: ${bytes.toString()}`)
  for (const name of WATCHED) {
    if (scan.duplicates.includes(name)) continue
    const member = scan.members.get(name)
    assert.equal(member !== undefined, Object.hasOwn(lenient.value, name))
    if (member !== undefined) assert.deepEqual(meaning(member), lenient.value[name])
  }
}

test('a document with a few bytes changed is read as JSON.parse reads it, or refused, and cuts change nothing', () => {
  fc.assert(
    fc.property(documents, mutations, pieceSizes, (document, changes, sizes) => {
      const bytes = mutate(Buffer.from(document.text), changes)
      const scan = scanWhole(bytes)
      assertAgreesWithJsonParse(scan, bytes)
      assert.deepEqual(scanPieces(bytes, sizes), scan)
    }),
    { numRuns: 3000 },
  )
})

test('a document with a few tokens changed is read as JSON.parse reads it, or refused, and cuts change nothing', () => {
  fc.assert(
    fc.property(nearDocuments, pieceSizes, (text, sizes) => {
      const bytes = Buffer.from(text)
      const scan = scanWhole(bytes)
      assertAgreesWithJsonParse(scan, bytes)
      assert.deepEqual(scanPieces(bytes, sizes), scan)
    }),
    { numRuns: 5000 },
  )
})
