import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { CallClosing, CallOpening, Reservation } from '../../src/ledger/call.ts'
import { type Command, decodeCommands, encodeCommands } from '../../src/store/sqlite/thread-messages.ts'
import { test } from '../support/suite.ts'
import { closing, opening } from './conformance/fixtures.ts'

/** A closing without its optional members has them as undefined. */
const NO_OPTIONS = { owner: undefined, losesRest: undefined }

/** Any JavaScript string, including lone surrogates. */
const text = fc
  .array(fc.oneof(fc.nat(0xffff), fc.constantFrom(0, 0x22, 0x5c, 0xd83d, 0xde00, 0x2028)), { maxLength: 12 })
  .map((units) => String.fromCharCode(...units))
const textOrNull = fc.option(text)
const nanos = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
const count = fc.maxSafeNat()
/** Records with a prototype, like the objects of the gateway. */
const record = <T>(of: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record(of, { noNullPrototype: true }) as fc.Arbitrary<T>
/** Bytes within a larger buffer, as most bytes are. */
const digest = fc
  .tuple(fc.uint8Array({ minLength: 32, maxLength: 32 }), fc.nat(9))
  .map(([bytes, before]) =>
    new Uint8Array([...Array(before).fill(0xee), ...bytes, 0xee]).subarray(before, -1),
  )
const hold: fc.Arbitrary<Reservation> = fc.oneof(
  fc.constantFrom<Reservation>({ kind: 'none' }, { kind: 'unbounded' }),
  record({ kind: fc.constant('bound' as const), nanos, listNanos: nanos }),
)

const anyOpening: fc.Arbitrary<CallOpening> = record({
  requestId: text,
  digest,
  atMs: count,
  path: text,
  objectId: textOrNull,
  isStanding: fc.boolean(),
  modelAsked: textOrNull,
  userAgent: textOrNull,
  hold,
  models: record({ names: fc.array(text), unknown: textOrNull, batchFile: textOrNull }),
  ambiguity: textOrNull,
  rating: text,
  countsHolds: fc.boolean(),
  hasWaited: fc.boolean(),
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
  rest: fc.constantFrom({}, { losesRest: true }, { owner: { accountId: 'acct_1', budgetId: 'bud_1' } }),
}).map(({ rest, ...more }) => closing('', { ...more, ...rest }))

function sent(...commands: readonly Command[]): readonly Command[] {
  return decodeCommands(structuredClone(encodeCommands(commands)))
}

test('an opening crosses the thread boundary unchanged, whatever its texts', () => {
  fc.assert(
    fc.property(anyOpening, (before) => {
      const after = { ...before, digest: Buffer.from(before.digest) }
      assert.deepEqual(sent(['admit', before]), [['admit', after]])
    }),
  )
})

test('a closing crosses the thread boundary unchanged, to the nanodollar', () => {
  fc.assert(
    fc.property(anyClosing, (before) => {
      assert.deepEqual(sent(['settle', before]), [['settle', { ...NO_OPTIONS, ...before }]])
    }),
  )
})

const admit: Command = ['admit', { ...opening('r', 'k'), digest: Buffer.from([0, 0x80]) }]
const settle: Command = [
  'settle',
  closing('r', { owner: { accountId: 'a', budgetId: 'b' }, losesRest: true }),
]
const balance: Command = ['getBalance', 'default']

test('a batch crosses in order, as one text if it contains only openings and closings', () => {
  assert.equal(typeof encodeCommands([settle, admit]), 'string')
  assert.deepEqual(sent(settle, admit), [settle, admit])
  assert.equal(typeof encodeCommands([settle, balance]), 'object')
  // Structured clone turns a Buffer into a Uint8Array.
  assert.deepEqual(sent(settle, balance, ['lookUpKey', new Uint8Array([1]), 5]), [
    settle,
    balance,
    ['lookUpKey', new Uint8Array([1]), 5],
  ])
})
