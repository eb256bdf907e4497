import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { CallClosing, CallOpening, Hold } from '../../src/ledger/call.ts'
import {
  type Command,
  failureOf,
  type Outcome,
  readBatch,
  readOutcomes,
  writeBatch,
  writeOutcomes,
} from '../../src/store/sqlite/thread-messages.ts'
import { test } from '../support/suite.ts'
import { closing, opening } from './conformance/fixtures.ts'

/** Any string that JavaScript knows, halves of characters among them. */
const text = fc
  .array(fc.oneof(fc.nat(0xffff), fc.constantFrom(0, 0x22, 0x5c, 0xd83d, 0xde00, 0x2028)), { maxLength: 12 })
  .map((units) => String.fromCharCode(...units))
const textOrNull = fc.option(text)
const nanos = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
const count = fc.maxSafeNat()
/** Records with a prototype, like the objects of the gateway. */
const record = <T>(of: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record(of, { noNullPrototype: true }) as fc.Arbitrary<T>
/** Bytes that are a part of a larger buffer, as most bytes are. */
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
  endpoint: text,
  modelAsked: textOrNull,
  userAgent: textOrNull,
  hold,
  models: record({ names: fc.array(text), unknown: textOrNull, batchFile: textOrNull }),
  ambiguity: textOrNull,
  rating: text,
  heldCounts: fc.boolean(),
  askedBefore: fc.boolean(),
  hasBegun: fc.boolean(),
}).map((more) => opening('', '', more))

const anyClosing: fc.Arbitrary<CallClosing> = record({
  requestId: text,
  state: fc.constantFrom('settled', 'released', 'interrupted'),
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
  rest: fc.constantFrom({}, { losesRest: true }),
}).map(({ rest, ...more }) => closing('', { ...more, ...rest }))

/** The commands as the other thread gets them. */
function sent(...commands: readonly Command[]): readonly Command[] {
  return readBatch(structuredClone(writeBatch(commands)))
}

function answered(commands: readonly Command[], outcomes: readonly Outcome[]): readonly Outcome[] {
  return readOutcomes(structuredClone(writeOutcomes(commands, outcomes)))
}

test('an opening comes over the boundary as it was, however odd its texts are', () => {
  fc.assert(
    fc.property(anyOpening, (before) => {
      const after = { ...before, digest: Buffer.from(before.digest) }
      assert.deepEqual(sent(['admit', before]), [['admit', after]])
    }),
  )
})

test('a closing comes over the boundary as it was, to the last nanodollar', () => {
  fc.assert(
    fc.property(anyClosing, (before) => assert.deepEqual(sent(['settle', before]), [['settle', before]])),
  )
})

const look: Command = ['lookUpKey', Buffer.from([1, 2, 0xff]), 5]
const admit: Command = ['admit', { ...opening('r', 'k'), digest: Buffer.from([0, 0x80]) }]
const settle: Command = ['settle', closing('r')]
const balance: Command = ['getBalance', 'default']

test('a batch comes over in its order, as one text unless there is something else in it', () => {
  assert.equal(typeof writeBatch([settle, admit]), 'string')
  assert.deepEqual(sent(settle, admit), [settle, admit])
  assert.equal(typeof writeBatch([settle, balance]), 'object')
  // Cloned bytes are bytes, and no Buffer any more.
  assert.deepEqual(sent(settle, balance, ['lookUpKey', new Uint8Array([1]), 5]), [
    settle,
    balance,
    ['lookUpKey', new Uint8Array([1]), 5],
  ])
})

test('the usual answers come back as they were, with a balance of any size', () => {
  fc.assert(
    fc.property(nanos, fc.boolean(), text, (balanceNanos, yes, id) => {
      const upstream = { url: id, sealedKey: yes ? id : null }
      const terms = yes ? null : { discountBillionths: 5, upstream }
      const values = [
        { balanceNanos, booked: yes },
        {
          kind: 'admitted',
          keyId: id,
          budgetId: id,
          accountId: id,
          logRequests: yes,
          balanceNanos,
          hasOthers: yes,
          terms,
        },
      ]
      const outcomes = values.map((value): Outcome => ({ ok: true, value }))
      const commands = [settle, admit]
      assert.equal(typeof writeOutcomes(commands, outcomes), 'string')
      assert.deepEqual(answered(commands, outcomes), outcomes)
    }),
  )
})

test('any other answer, and those beside it, come back as they were too', () => {
  const settled: Outcome = { ok: true, value: { balanceNanos: 7n, booked: true } }
  const budget = { spentNanos: -(2n ** 63n), heldNanos: 1n, capNanos: 2n, resetsAtMs: 3 }
  for (const value of [
    { kind: 'refused', refusal: { reason: 'unknown_key' }, balanceNanos: null },
    { kind: 'refused', refusal: { reason: 'budget_exceeded', budget }, balanceNanos: 5n },
    { kind: 'held', by: { limit: 'budget', budget }, accountId: 'default', balanceNanos: 5n },
  ]) {
    const outcomes: Outcome[] = [settled, { ok: true, value }]
    assert.deepEqual(answered([settle, admit], outcomes), outcomes)
  }
  const failure = failureOf(Object.assign(new Error('database or disk is full'), { errcode: 13 }))
  for (const command of [admit, settle, look]) {
    assert.deepEqual(answered([settle, command], [settled, failure]), [settled, failure])
  }
  const chargedNanos = { ok: true, value: { chargedNanos: 9n } } as const
  assert.deepEqual(answered([balance, settle], [chargedNanos, settled]), [chargedNanos, settled])
})
