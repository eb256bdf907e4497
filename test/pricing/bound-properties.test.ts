import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Quantities, Unit } from '../../src/kernel/usage.ts'
import { boundOf } from '../../src/pricing/bound.ts'
import type { BoundRequest, BoundSettings, RatingContext } from '../../src/pricing/modifiers.ts'
import { findModel } from '../../src/pricing/price-book.ts'
import { rate } from '../../src/pricing/rate.ts'
import { UNITS_OF } from '../../src/pricing/rate-keys.ts'
import type { Fallback } from '../../src/providers/request-limits.ts'
import { NO_REQUEST_TOOLS as NO_TOOLS } from '../../src/providers/request-tools.ts'
import { discountOf, partOf, shipped, usageOf } from './worked-example.ts'

const models = [...shipped.names.keys()]

const tools = fc.record({
  promptTokens: fc.constantFrom(0, 2_048),
  usesMax: fc.constantFrom(0, 1, 3),
  webSearchesMax: fc.nat({ max: 9 }),
  fileSearchesMax: fc.nat({ max: 9 }),
  containers: fc.nat({ max: 2 }),
  imageModel: fc.constant(null),
  advisors: fc.constant([]),
})

const requests: fc.Arbitrary<BoundRequest> = fc.record({
  surface: fc.constantFrom('messages' as const, 'chat' as const),
  endpoint: fc.constantFrom('/v1/messages', '/v1/chat/completions', '/v1/responses', '/v1/decisions'),
  model: fc.constantFrom(...models),
  bodyBytes: fc.oneof(fc.nat({ max: 5_000 }), fc.nat({ max: 2_000_000 })),
  maxOutputTokens: fc.option(fc.nat({ max: 300_000 })),
  predictedTokensMax: fc.constantFrom(0, 1_000),
  prompts: fc.constantFrom(1, 3),
  n: fc.integer({ min: 1, max: 5 }),
  serviceTier: fc.constantFrom(
    null,
    'auto',
    'default',
    'flex',
    'priority',
    'fast',
    'ultrafast',
    'scale',
    'odd',
  ),
  mayBeFast: fc.boolean(),
  geography: fc.constantFrom(null, 'us', 'global'),
  refersElsewhere: fc.boolean(),
  mayReferToAudio: fc.boolean(),
  compactsAbove: fc.constantFrom(null, 0, 100_000),
  tools,
  fallbacks: fc.array(
    fc.record({ model: fc.constantFrom(...models), maxOutputTokens: fc.option(fc.nat({ max: 300_000 })) }),
    { maxLength: 2 },
  ),
})

const settings: fc.Arbitrary<BoundSettings> = fc.record({
  defaultTier: fc.constantFrom(null, 'default', 'flex', 'priority'),
  regional: fc.boolean(),
  geographyPossible: fc.boolean(),
})

/** Shares a total out over the units of a side, as the weights say. */
function shareOut(total: number, units: readonly Unit[], weights: readonly number[]): Quantities {
  const sum = weights.reduce((a, b) => a + b, 0)
  const shared: { [U in Unit]?: number } = {}
  let left = total
  for (const [index, unit] of units.entries()) {
    const share = sum === 0 ? 0 : Math.floor((total * (weights[index] ?? 0)) / sum)
    shared[unit] = Math.min(left, share)
    left -= Math.min(left, share)
  }
  return shared
}

interface Outcome {
  readonly inputUsed: number
  readonly outputUsed: number
  readonly inputWeights: readonly number[]
  readonly outputWeights: readonly number[]
  readonly searches: number
  readonly downgraded: boolean
  readonly inTheUs: boolean
}

const fraction = fc.double({ min: 0, max: 1, noNaN: true })
/** Weights that mostly give one kind of token, since the extremes are there. */
const weights = (count: number) =>
  fc.oneof(
    fc.array(fc.nat({ max: 10 }), { minLength: count, maxLength: count }),
    fc.nat({ max: count - 1 }).map((only) => Array.from({ length: count }, (_, at) => (at === only ? 1 : 0))),
  )

const outcomes: fc.Arbitrary<Outcome> = fc.record({
  inputUsed: fc.oneof(fc.constant(1), fraction),
  outputUsed: fc.oneof(fc.constant(1), fraction),
  inputWeights: weights(UNITS_OF.input.length),
  outputWeights: weights(UNITS_OF.output.length),
  searches: fraction,
  downgraded: fc.boolean(),
  inTheUs: fc.boolean(),
})

/** Quantities that the model may have used within the limits of the request and of the price list. */
function quantitiesOf(
  request: BoundRequest,
  { model: name, maxOutputTokens: stated }: Fallback,
  outcome: Outcome,
): Quantities {
  const model = findModel(shipped, name)
  assert.ok(model)
  const window = model.contextWindowTokens
  const sent = request.bodyBytes + request.tools.promptTokens
  const inputMost = request.refersElsewhere ? (window ?? sent) : Math.min(sent, window ?? sent)
  const room = Math.max(window ?? 0, model.maxOutputTokens ?? 0)
  const outputMost =
    stated === null ? (model.maxOutputTokens ?? window ?? 0) : room === 0 ? stated : Math.min(stated, room)
  const input = Math.floor(inputMost * outcome.inputUsed) * (1 + (request.tools.usesMax ?? 0))
  const output = Math.floor(outputMost * outcome.outputUsed) * request.n
  return {
    ...shareOut(input, UNITS_OF.input, outcome.inputWeights),
    ...shareOut(output, UNITS_OF.output, outcome.outputWeights),
    audio_input_milliseconds: Math.floor(request.bodyBytes * 10 * outcome.inputUsed),
    web_searches: Math.floor((request.tools.webSearchesMax ?? 0) * outcome.searches),
    file_searches: Math.floor((request.tools.fileSearchesMax ?? 0) * outcome.searches),
  }
}

test('no usage that fits a request costs more than its bound, at list price or discounted', () => {
  let bounded = 0
  fc.assert(
    fc.property(
      requests,
      settings,
      outcomes,
      fc.bigInt({ min: 0n, max: 1_000_000_000n }),
      (request, given, outcome, keep) => {
        const bound = boundOf(request, shipped, given, discountOf(keep))
        if (bound.kind !== 'bound') return
        bounded++
        const left = request.serviceTier === null || request.serviceTier === 'auto'
        const tierAsked = left && request.surface === 'chat' ? given.defaultTier : request.serviceTier
        const speedy = tierAsked !== 'flex' && outcome.downgraded
        const places = request.geography ?? (given.geographyPossible && outcome.inTheUs ? 'us' : null)
        const asked = { model: request.model ?? '', maxOutputTokens: request.maxOutputTokens }
        // Only the Messages API has other models take over.
        const attempts = [asked, ...(request.surface === 'messages' ? request.fallbacks : [])]
        const usage = usageOf(
          attempts.map((attempt, at) =>
            partOf(
              quantitiesOf(request, attempt, outcome),
              at === attempts.length - 1 ? null : attempt.model,
            ),
          ),
          {
            modelServed: attempts.at(-1)?.model ?? null,
            serviceTier: speedy ? 'default' : tierAsked,
            speed: request.mayBeFast && !outcome.downgraded ? 'fast' : null,
            geography: places,
          },
        )
        const context: RatingContext = {
          surface: request.surface,
          modelAsked: request.model,
          endpoint: request.endpoint,
          regional: given.regional,
          batch: false,
        }
        const rating = rate(usage, context, shipped, discountOf(keep))
        assert.ok(rating.listNanos <= bound.listNanos, `${rating.listNanos} > ${bound.listNanos}`)
        assert.ok(rating.costNanos <= bound.costNanos, `${rating.costNanos} > ${bound.costNanos}`)
      },
    ),
    { numRuns: 3_000 },
  )
  assert.ok(bounded > 500, `only ${bounded} requests could be bounded`)
})

test('the bound is as small as can be: some usage that fits the request costs all of it', () => {
  for (const model of shipped.models) {
    for (const bodyBytes of [1_000, 900_000]) {
      const request: BoundRequest = {
        surface: 'chat',
        endpoint: '/v1/responses',
        model: model.id,
        bodyBytes,
        maxOutputTokens: 500,
        predictedTokensMax: 0,
        prompts: 1,
        n: 1,
        serviceTier: null,
        mayBeFast: false,
        geography: null,
        refersElsewhere: false,
        mayReferToAudio: false,
        compactsAbove: null,
        tools: { ...NO_TOOLS, webSearchesMax: 2 },
        fallbacks: [],
      }
      const given = { defaultTier: null, regional: false, geographyPossible: false }
      const bound = boundOf(request, shipped, given)
      assert.equal(bound.kind, 'bound', model.id)
      let most = 0n
      for (const input of UNITS_OF.input.keys()) {
        for (const output of UNITS_OF.output.keys()) {
          const only = (at: number, count: number): number[] =>
            Array.from({ length: count }, (_, index) => (index === at ? 1 : 0))
          const quantities = quantitiesOf(
            request,
            { model: model.id, maxOutputTokens: 500 },
            {
              inputUsed: 1,
              outputUsed: 1,
              inputWeights: only(input, UNITS_OF.input.length),
              outputWeights: only(output, UNITS_OF.output.length),
              searches: 1,
              downgraded: false,
              inTheUs: false,
            },
          )
          const usage = usageOf([partOf(quantities)], { modelServed: model.id })
          const context = { ...request, modelAsked: null, regional: false, batch: false }
          const { listNanos } = rate(usage, context, shipped, discountOf(1_000_000_000n))
          most = listNanos > most ? listNanos : most
        }
      }
      // A bound is rounded up, a cost to the nearest nanodollar.
      assert.ok(bound.listNanos - most <= 1n, `${model.id}: ${bound.listNanos} for ${most}`)
    }
  }
})
