import assert from 'node:assert/strict'
import { test } from '../../support/suite.ts'
import { type OpenMortalStore, RULES, rulesOf, SimulationRun } from './simulation-run.ts'

const STEPS = 250

/** The same in every run, one per set of rules. They reach the rarest cases within the steps. */
export const SEEDS_OF_RULES = [15, 19, 23]

/** The others once found a cap above 1,000 USD, and a hold floor of the month before. */
const FIXED_SEEDS = [...SEEDS_OF_RULES, 500_000_246, 123_456_806]

const EVERY_ANSWER = [
  ...['admitted', 'unknown_key', 'revoked_key', 'expired_key', 'ambiguous_body', 'model_not_allowed'],
  ...['models_unknown', 'model_not_priced', 'endpoint_not_metered', 'budget_exceeded', 'credit_exhausted'],
  ...[
    'held by budget',
    'held by credit',
    'applied',
    'applied before',
    'rejected',
    'death',
    'changed',
    'final',
  ],
]

/** Compares each answer with a model. A failure prints its seed; `SIMULATION_SEED=<seed>` repeats it. */
export function simulationConformance(
  storeName: string,
  openStore: OpenMortalStore,
  { seeds = FIXED_SEEDS, newRuns = RULES.length } = {},
): void {
  const answered = new Set<string>()

  async function play(seed: number): Promise<void> {
    const subject = await openStore()
    try {
      const run = new SimulationRun(subject, seed)
      await run.play(STEPS)
      for (const answer of run.tally.keys()) answered.add(answer)
    } finally {
      await subject.close()
    }
  }

  for (const seed of seeds) {
    test(`${storeName}: simulation ${seed}, of ${rulesOf(seed).words}, matches the model at every step`, () =>
      play(seed))
  }

  if (seeds === FIXED_SEEDS)
    test(`${storeName}: the fixed simulations produce every possible answer`, () => {
      assert.deepEqual(
        EVERY_ANSWER.filter((answer) => !answered.has(answer)),
        [],
      )
    })

  const given = Number(process.env['SIMULATION_SEED'] ?? Math.floor(Math.random() * 1_000_000_000))
  for (const seed of Array.from({ length: newRuns }, (_, i) => given + i)) {
    test(`${storeName}: a new simulation of ${rulesOf(seed).words} matches the model at every step`, () =>
      play(seed))
  }
}
