import fc from 'fast-check'
import type { CallClosing } from '../../src/ledger/call.ts'
import { anyCharacter } from '../support/any-character.ts'

export function closingOf(requestId: string, more: Partial<CallClosing> = {}): CallClosing {
  return {
    requestId,
    state: 'settled',
    atMs: 1_790_000_000_123,
    status: 200,
    modelServed: 'claude-sonnet-4-5',
    stopReason: 'end_turn',
    streamed: true,
    estimated: false,
    unpriced: false,
    pricedAsRequested: false,
    usage: '{"parts":[]}',
    tokens: { input: 11, output: 7, cacheRead: 0, cacheWrite: 0 },
    costNanos: 123_456_789n,
    listNanos: 987_654_321n,
    upstreamMs: 840,
    overheadMs: 2,
    upstreamRequestId: 'req_upstream',
    bytesIn: 100,
    bytesOut: 2_000,
    ...more,
  }
}

/** Any text of a reply, with lone surrogates, newlines and nulls. */
const anyText = fc.oneof(
  fc.string({ unit: anyCharacter }),
  fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)) }),
)
const count = fc.nat({ max: Number.MAX_SAFE_INTEGER })
const amount = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })

const PLAIN = { noNullPrototype: true } as const

const anyMembers: fc.Arbitrary<CallClosing> = fc.record(
  {
    requestId: anyText,
    state: fc.constantFrom('settled' as const, 'released' as const, 'interrupted' as const),
    atMs: count,
    status: fc.option(count),
    modelServed: fc.option(anyText),
    stopReason: fc.option(anyText),
    streamed: fc.boolean(),
    estimated: fc.boolean(),
    unpriced: fc.boolean(),
    pricedAsRequested: fc.boolean(),
    usage: fc.option(anyText),
    tokens: fc.record({ input: count, output: count, cacheRead: count, cacheWrite: count }, PLAIN),
    costNanos: amount,
    listNanos: amount,
    upstreamMs: fc.option(count),
    overheadMs: count,
    upstreamRequestId: fc.option(anyText),
    bytesIn: count,
    bytesOut: count,
  },
  PLAIN,
)

export const anyClosing = fc
  .tuple(anyMembers, fc.constantFrom({}, { losesRest: true }))
  .map(([closing, rest]): CallClosing => ({ ...closing, ...rest }))
