import assert from 'node:assert/strict'
import fc from 'fast-check'
import { roundHalfEven } from '../../src/kernel/money.ts'
import { UNITS } from '../../src/kernel/usage.ts'
import { createBatchUsage } from '../../src/pricing/batch-usage.ts'
import { test } from '../support/suite.ts'
import { type Billed, bill, CHAT, MESSAGES, partOf, shipped, usageOf, versionWith } from './worked-example.ts'

const units = fc.record(Object.fromEntries(UNITS.map((unit) => [unit, fc.nat({ max: 400_000 })])), {
  requiredKeys: [],
})

/** Batch lines of every length, so that each model has prompts above and below the long-context threshold. */
const line = fc.record({
  units,
  modelServed: fc.constantFrom('claude-haiku-5-5', 'claude-opus-5', 'gpt-6-luna', 'gpt-6-sol', 'unknown'),
  geography: fc.constantFrom(null, 'us'),
  freeRefusal: fc.boolean(),
})

const surface = fc.constantFrom(MESSAGES, CHAT)
/** The model that prices unpriced names if the batch names models. */
const asked = fc.constantFrom(null, 'claude-haiku-5-5', 'gpt-6-sol')

const total = (ratings: readonly Billed[]) =>
  ratings.flatMap(({ lines }) => lines).reduce((sum, { amount }) => sum + amount.numerator, 0n)

test('the lines of a batch cost together exactly what they cost apart, rounded once per model', () => {
  fc.assert(
    fc.property(fc.array(line, { maxLength: 20 }), surface, asked, (lines, surface, modelAsked) => {
      const context = { ...surface, modelAsked, batch: true }
      const used = createBatchUsage(context, shipped)
      const apart: Billed[] = []
      for (const { units, ...said } of lines) {
        const usage = usageOf([partOf(units)], said)
        used.add(usage)
        apart.push(bill(usage, { ...context, modelAsked: modelAsked ?? said.modelServed }))
      }
      const sums = used.byModel()
      assert.equal(
        sums.reduce((sum, { requests }) => sum + requests, 0),
        lines.length,
      )
      const together = sums.map(({ model, usage }) =>
        bill(usage, { ...context, modelAsked: modelAsked ?? model }),
      )
      assert.equal(total(together), total(apart))
      for (const rating of together) {
        const [first] = rating.lines
        if (first === undefined) continue
        const { denominator } = first.amount
        assert.equal(rating.listNanos, roundHalfEven({ numerator: total([rating]), denominator }))
      }
    }),
  )
})

test('lines of an unpriced model use the long-context threshold of the model that prices them', () => {
  const context = { ...MESSAGES, modelAsked: 'claude-haiku-5-5', batch: true }
  const used = createBatchUsage(context, shipped)
  const apart = [150_000, 50_000].map((input_tokens) => {
    const usage = usageOf([partOf({ input_tokens })], { modelServed: 'claude-haiku-5-5-20991231' })
    used.add(usage)
    return bill(usage, context)
  })
  const together = used.byModel().map(({ usage }) => bill(usage, context))
  assert.equal(total(together), total(apart))
})

test('lines of a model without a price cost together what they cost apart once it has one', () => {
  const standard = { input: '2', output: '10', long_context: { input: '4', output: '15' } }
  const model = { id: 'new', provider: 'openai', rates: { long_context_above: 272_000, standard } }
  const version = versionWith({ models: [model] })
  const context = { ...CHAT, modelAsked: null, batch: true }
  const used = createBatchUsage(context, shipped)
  const rated = { ...context, modelAsked: 'new' }
  const apart = [300_000, 1_000, 272_000, 500_000].map((input_tokens) => {
    const usage = usageOf([partOf({ input_tokens, output_tokens: 100 })], { modelServed: 'new' })
    used.add(usage)
    return bill(usage, rated, undefined, version)
  })
  const together = used.byModel().map(({ usage }) => bill(usage, rated, undefined, version))
  assert.equal(total(together), total(apart))
})

test('a batch keeps a separate sum per geography only where it changes the price', () => {
  const used = createBatchUsage({ ...MESSAGES, modelAsked: null, batch: true }, shipped)
  for (const modelServed of ['claude-opus-5', 'gpt-6-luna', 'unknown'])
    for (const geography of [null, 'global', 'us'])
      used.add(usageOf([partOf({ input_tokens: 1 })], { modelServed, geography }))
  const counts = Map.groupBy(used.byModel(), ({ model }) => model)
  assert.deepEqual(
    [...counts].map(([model, sums]) => [model, sums.map(({ requests }) => requests)]),
    [
      ['claude-opus-5', [2, 1]],
      ['gpt-6-luna', [3]],
      // Its price may be added later.
      ['unknown', [1, 1, 1]],
    ],
  )
})
