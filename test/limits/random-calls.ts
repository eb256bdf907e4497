import assert from 'node:assert/strict'
import type { BilledReply, BillingBench } from '../billing/bench-of-one.ts'
import { Random } from '../support/random.ts'
import { nanosOf } from './read-ledger.ts'

/** Choices from the seed in `TEST_SEED` or a new one, which is printed. */
export function drawChance(log: (line: string) => void): Random {
  const seed = Number(process.env['TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
  log(`TEST_SEED=${seed}`)
  return new Random(seed)
}

export interface RandomCall {
  readonly surface: 'messages' | 'chat'
  readonly stream: boolean
  readonly maxTokens: number
  readonly simulate: string
  readonly costNanos: number
}

/** Both models cost $0.10 and $0.50 per million tokens. */
export function drawCall(chance: Random, delayMsMax = 12): RandomCall {
  const surface = chance.below(2) === 0 ? 'messages' : 'chat'
  const stream = chance.below(2) === 0
  const maxTokens = 50 + chance.below(950)
  const [input, output] = [chance.below(100), chance.below(maxTokens + 1)]
  const usage =
    surface === 'messages'
      ? { input_tokens: input, output_tokens: output }
      : { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
  const length = stream ? `tokens=4;drip=${chance.below(3)}` : `delay=${chance.below(delayMsMax)}`
  return {
    surface,
    stream,
    maxTokens,
    simulate: `usage=${JSON.stringify(usage)};${length}`,
    costNanos: input * 100 + output * 500,
  }
}

export function requestOf({ surface, stream, maxTokens }: RandomCall): { path: string; body: unknown } {
  const messages = [{ role: 'user', content: 'How long is the bridge?' }]
  return surface === 'messages'
    ? { path: '/v1/messages', body: { model: 'claude-haiku-5-5', max_tokens: maxTokens, stream, messages } }
    : {
        path: '/v1/chat/completions',
        body: { model: 'gpt-6-luna', max_completion_tokens: maxTokens, stream, messages },
      }
}

export async function send(bench: BillingBench, call: RandomCall, key: string): Promise<BilledReply> {
  const { path, body } = requestOf(call)
  const { surface, simulate } = call
  return await bench.call(path, body, { surface, simulate, key })
}

export interface Outcomes {
  readonly served: number
  readonly spentNanos: number
  readonly highestNanos: number
  readonly exceeded: readonly BudgetDetails[]
  readonly held: readonly BudgetDetails[]
}

export interface BudgetDetails {
  readonly spentNanos: number
  readonly heldNanos: number
  readonly capNanos: number
}

/** Groups the answers, and checks that a capped key can get each of them, billed exactly. */
export function sortOut(answers: readonly { call: RandomCall; reply: BilledReply }[]): Outcomes {
  const served: RandomCall[] = []
  const refused = { exceeded: [] as BudgetDetails[], held: [] as BudgetDetails[] }
  for (const { call, reply } of answers) {
    const said = call.stream && reply.status === 200 ? reply.trailer : reply.header
    if (reply.status === 200) {
      assert.equal(nanosOf(said('x-svc-cost-usd')), call.costNanos)
      served.push(call)
      continue
    }
    const text = reply.body.toString()
    assert.ok(reply.status === 402 || reply.status === 429, `${reply.statusLine} ${text}`)
    assert.equal(said('x-svc-cost-usd'), '0')
    const { code, details } = JSON.parse(text).error
    assert.equal(code, reply.status === 402 ? 'budget_exceeded' : 'budget_held')
    refused[reply.status === 402 ? 'exceeded' : 'held'].push({
      spentNanos: nanosOf(details.spent_usd),
      heldNanos: nanosOf(details.held_usd),
      capNanos: nanosOf(details.cap_usd),
    })
  }
  const costs = served.map((call) => call.costNanos)
  return {
    served: served.length,
    spentNanos: costs.reduce((sum, cost) => sum + cost, 0),
    highestNanos: Math.max(0, ...costs),
    ...refused,
  }
}

export function assertCapHeld(outcomes: Outcomes, capNanos: number): void {
  const { spentNanos, highestNanos, exceeded, held } = outcomes
  if (spentNanos > 0)
    assert.ok(spentNanos - highestNanos < capNanos, `${spentNanos} is more than one call above ${capNanos}`)
  for (const details of exceeded) {
    assert.ok(
      details.spentNanos >= details.capNanos,
      `402 before the cap is spent: ${JSON.stringify(details)}`,
    )
  }
  for (const details of held) {
    assert.ok(details.spentNanos < details.capNanos, `429 for a spent cap: ${JSON.stringify(details)}`)
    assert.ok(
      details.heldNanos > 0 && details.spentNanos + details.heldNanos >= details.capNanos,
      `429 though there is room: ${JSON.stringify(details)}`,
    )
  }
}
