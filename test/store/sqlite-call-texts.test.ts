import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { CallClosing, CallOpening, Hold } from '../../src/ledger/call.ts'
import { readCommand, readOutcome, writeCommand, writeOutcome } from '../../src/store/sqlite/call-texts.ts'
import type { Command } from '../../src/store/sqlite/operations.ts'
import { failureOf, type Outcome } from '../../src/store/sqlite/outcome.ts'
import { closing, opening } from './conformance/fixtures.ts'

/** Any string that JavaScript knows, halves of characters among them. */
const text = fc
  .array(fc.oneof(fc.nat(0xffff), fc.constantFrom(0, 0x22, 0x5c, 0xd83d, 0xde00, 0x2028)), { maxLength: 12 })
  .map((units) => String.fromCharCode(...units))
const textOrNull = fc.option(text)
const nanos = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
const count = fc.maxSafeNat()
/** As the objects of the gateway are. */
const record = <T>(of: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record(of, { noNullPrototype: true }) as fc.Arbitrary<T>
/** Part of a larger memory, as most bytes are. */
const digest = fc
  .tuple(fc.uint8Array({ minLength: 32, maxLength: 32 }), fc.nat(9))
  .map(([bytes, before]) =>
    new Uint8Array([...Array(before).fill(0xee), ...bytes, 0xee]).subarray(before, -1),
  )
const hold: fc.Arbitrary<Hold> = fc.oneof(
  fc.constantFrom<Hold>({ kind: 'none' }, { kind: 'unbounded' }),
  record({ kind: fc.constant('bound' as const), nanos, listNanos: nanos }),
)

const anyOpening: fc.Arbitrary<CallOpening> = record({
  requestId: text,
  digest,
  atMs: count,
  path: text,
  modelAsked: textOrNull,
  userAgent: textOrNull,
  hold,
  models: record({ names: fc.array(text), unknown: textOrNull, batchFile: textOrNull }),
  ambiguity: textOrNull,
  rating: text,
  heldCounts: fc.boolean(),
  ahead: record({ key: fc.boolean(), accounts: fc.array(text) }),
  askedBefore: fc.boolean(),
}).map((more) => opening('', '', more))

const anyClosing: fc.Arbitrary<CallClosing> = record({
  requestId: text,
  state: fc.constantFrom('settled', 'released'),
  status: fc.option(count),
  modelServed: textOrNull,
  stopReason: textOrNull,
  usage: textOrNull,
  tokens: record({ input: count, output: count, cacheRead: count, cacheWrite: count }),
  costNanos: nanos,
  listNanos: nanos,
  upstreamMs: fc.option(count),
  upstreamRequestId: textOrNull,
  bytesOut: count,
}).map((more) => closing('', more))

test('an opening comes over the boundary as it was, however odd its texts are', () => {
  fc.assert(
    fc.property(anyOpening, (sent) => {
      const [name, got] = readCommand(structuredClone(writeCommand(['admit', sent])))
      assert.equal(name, 'admit')
      const expected = { ...sent, digest: Buffer.from(sent.digest) }
      assert.deepEqual(got, expected)
    }),
  )
})

test('a closing comes over the boundary as it was, to the last nanodollar', () => {
  fc.assert(
    fc.property(anyClosing, (sent) => {
      assert.deepEqual(readCommand(structuredClone(writeCommand(['settle', sent]))), ['settle', sent])
    }),
  )
})

test('every other command comes over as the object it is', () => {
  const command: Command = ['recognise', new Uint8Array([1, 2, 3]), 5]
  assert.deepEqual(readCommand(structuredClone(writeCommand(command))), command)
})

test('the answers to both come back as they were, with a balance of any size', () => {
  const admit: Command = ['admit', opening('r', 'k')]
  const settle: Command = ['settle', closing('r')]
  const answer = (command: Command, outcome: Outcome): Outcome | undefined =>
    readOutcome(structuredClone(writeOutcome(command, outcome)))
  fc.assert(
    fc.property(nanos, fc.boolean(), text, (balanceNanos, yes, id) => {
      const settled = { ok: true, value: { balanceNanos, booked: yes } } as const
      assert.deepEqual(answer(settle, settled), settled)
      const admitted = { kind: 'admitted', keyId: id, accountId: id, logRequests: yes, balanceNanos } as const
      assert.deepEqual(answer(admit, { ok: true, value: admitted }), { ok: true, value: admitted })
      const budget = { spentNanos: balanceNanos, heldNanos: 1n, capNanos: 2n, resetsAtMs: 3 }
      for (const value of [
        { kind: 'refused', refusal: { reason: 'unknown_key' }, balanceNanos: null },
        { kind: 'refused', refusal: { reason: 'budget_exceeded', budget }, balanceNanos },
        { kind: 'held', by: { limit: 'budget', budget }, accountId: id, balanceNanos },
      ]) {
        assert.deepEqual(answer(admit, { ok: true, value }), { ok: true, value })
      }
    }),
  )
})

test('a failure of either comes back as the failure it was, and no answer as none', () => {
  const failure = failureOf(Object.assign(new Error('database or disk is full'), { errcode: 13 }))
  for (const command of [
    ['admit', opening('r', 'k')],
    ['settle', closing('r')],
  ] as const) {
    assert.deepEqual(readOutcome(structuredClone(writeOutcome(command, failure))), failure)
  }
  assert.equal(readOutcome(undefined), undefined)
})
