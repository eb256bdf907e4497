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
export function drawCall(chance: Random): RandomCall {
  const surface = chance.below(2) === 0 ? 'messages' : 'chat'
  const stream = chance.below(2) === 0
  const maxTokens = 50 + chance.below(950)
  const [input, output] = [chance.below(100), chance.below(maxTokens + 1)]
  const usage =
    surface === 'messages'
      ? { input_tokens: input, output_tokens: output }
      : { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
  const length = stream ? `tokens=4;drip=${chance.below(3)}` : `delay=${chance.below(12)}`
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

interface BudgetDetails {
  readonly spentNanos: number
  readonly capNanos: number
}

/** Groups the answers, and checks that a capped key can get each of them, billed exactly. */
export function sortOut(answers: readonly { call: RandomCall; reply: BilledReply }[]) {
  const costs: number[] = []
  const exceeded: BudgetDetails[] = []
  for (const { call, reply } of answers) {
    const said = call.stream && reply.status === 200 ? reply.trailer : reply.header
    if (reply.status === 200) {
      assert.equal(nanosOf(said('x-svc-cost-usd')), call.costNanos)
      costs.push(call.costNanos)
      continue
    }
    const text = reply.body.toString()
    assert.equal(reply.status, 402, `${reply.statusLine} ${text}`)
    assert.equal(said('x-svc-cost-usd'), '0')
    const { code, details } = JSON.parse(text).error
    assert.equal(code, 'budget_exceeded')
    exceeded.push({ spentNanos: nanosOf(details.spent_usd), capNanos: nanosOf(details.cap_usd) })
  }
  return {
    served: costs.length,
    spentNanos: costs.reduce((sum, cost) => sum + cost, 0),
    highestNanos: Math.max(0, ...costs),
    exceeded,
  }
}
