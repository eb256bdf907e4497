import assert from 'node:assert/strict'
import { explainRefusal, explainSpent } from '../../src/calls/refusals.ts'
import type { Budget } from '../../src/ledger/call.ts'
import { test } from '../support/suite.ts'

const REQUEST: Parameters<typeof explainRefusal>[1] = {
  endpoint: 'POST /v1/of-tomorrow',
  model: null,
  closestModel: null,
  unmeteredMember: null,
  allowedModels: [],
  refusesAllKeys: false,
}
const explainUnmetered = (request: Partial<typeof REQUEST>) =>
  explainRefusal({ reason: 'endpoint_not_metered' }, { ...REQUEST, ...request }).message

test('for a misspelled path, the closest metered endpoint is suggested with its method', () => {
  for (const [endpoint, suggestion] of [
    ['POST /v1/respones', ' Did you mean POST /v1/responses?'],
    ['POST /v1/message', ' Did you mean POST /v1/messages?'],
    ['POST /v1/chat/completion', ' Did you mean POST /v1/chat/completions?'],
    ['PUT /v1/messages', ' Did you mean POST /v1/messages?'],
    ['POST /v1/fine_tuning/jobs', ''],
    ['POST /dashbord', ''],
    ['POST /', ''],
  ] as const)
    assert.equal(
      explainUnmetered({ endpoint }),
      `This gateway cannot meter ${endpoint}, so no key with limits can call it.${suggestion} ` +
        'Check the path, or ask the operator for a key without limits.',
    )
})

test('if keys without limits are refused too, the message names the setting', () => {
  assert.equal(
    explainUnmetered({ refusesAllKeys: true }),
    'This gateway cannot meter POST /v1/of-tomorrow, so no key can call it. ' +
      'Check the path, or ask the operator to change pricing.unpriced.',
  )
})

test('a model refusal names at most ten of the models that the key may use', () => {
  const allowedModels = Array.from({ length: 12 }, (_, n) => `model-${n}`)
  const refusal = { reason: 'model_not_allowed', model: 'gpt-6' } as const
  const { message } = explainRefusal(refusal, { ...REQUEST, allowedModels })
  assert.match(
    message,
    /^This key may not use the model "gpt-6"\. Use one of its allowed_models: "model-0", /,
  )
  assert.match(message, /, "model-9" and 2 more\.$/)
})

test('the figures of a refusal for a spent budget are exact amounts in USD', () => {
  const budget: Budget = {
    scope: 'key',
    period: 'month',
    resetsAtMs: Date.UTC(2026, 11),
    spentNanos: 5_000_200_000n,
    heldNanos: 575n,
    capNanos: 5_000_000_000n,
  }
  const refusal = explainSpent({ reason: 'budget_exceeded', budget })
  const figures = { spentUsd: '5.0002', heldUsd: '0.000000575', capUsd: '5' }
  assert.deepEqual(refusal.budget, { ...figures, resetsAt: '2026-12-01T00:00:00.000Z' })
})
