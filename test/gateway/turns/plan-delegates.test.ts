import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DelegatedContext } from '../../../src/gateway/turns/plan-delegates.ts'
import type { TurnCall } from '../../../src/gateway/turns/turn-call.ts'

const WINDOW_TOKENS = 1_000_000

/** How many tokens a delegate's response that is cut now is taken to have read. */
function readByCut(context: DelegatedContext): number {
  const bill = { tokensHeld: () => ({ input: WINDOW_TOKENS }) }
  const turn = { call: { plan: { bill } } } as unknown as TurnCall
  context.boundCut(turn)
  return turn.call.plan.bill.tokensHeld(null).input ?? 0
}

const done = (tokens: number) => {
  const usage = { input_tokens: tokens, output_tokens: 0 }
  return Buffer.from(JSON.stringify({ type: 'response.completed', response: { usage } }))
}

test('one that is cut has read what the one before it had, what came since, and what came while that one worked', () => {
  const context = new DelegatedContext()
  context.add(40_000)
  assert.equal(readByCut(context), WINDOW_TOKENS)
  const began = context.bytes
  context.add(4_000)
  context.ended(done(20_000), began)
  const between = readByCut(context)
  assert.ok(between > 20_000 && between < 22_000, `${between} tokens`)
  context.add(8_000)
  assert.ok(readByCut(context) >= between + 1_500)
})

test('what one has not read that ends beside another is not taken off', () => {
  const context = new DelegatedContext()
  const first = context.bytes
  context.add(500_000)
  context.bytes
  context.ended(done(1_000), first)
  assert.ok(readByCut(context) > 100_000, `${readByCut(context)} tokens`)
})
