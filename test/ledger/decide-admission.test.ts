import assert from 'node:assert/strict'
import { NANOS_PER_USD } from '../../src/kernel/money.ts'
import type { Budget, CallOpening } from '../../src/ledger/call.ts'
import {
  type Decision,
  decideAdmission,
  FOREIGN_FILE,
  HOLD_NANOS_MAX,
  type KeyState,
} from '../../src/ledger/decide-admission.ts'
import { test } from '../support/suite.ts'

const NOW = 1_000
const UNBOUNDED_NANOS = 25n * NANOS_PER_USD

const NAMED = { names: ['m'], unknown: null, batchFile: null }

const OPENING: CallOpening = {
  ...{ requestId: 'req_1', digest: Buffer.alloc(32), atMs: NOW, method: 'POST', path: '/v1/messages' },
  ...{ endpoint: '/v1/messages', surface: 'messages', modelAsked: 'm', clientIp: '::1', userAgent: null },
  hold: { kind: 'bound', nanos: 10n, listNanos: 20n },
  models: NAMED,
  ...{ socketId: null, ambiguity: null, priceVersion: 'v', rating: '{}', unratable: null },
  ...{ heldCounts: true, unboundedNanos: UNBOUNDED_NANOS, askedBefore: false, hasBegun: false },
  isRequest: true,
  hasHold: false,
}

const KEY_STATE: KeyState = {
  ...{
    isSuspended: false,
    revokedAtMs: null,
    expiresAtMs: null,
    allowedModels: null,
    keyCeilings: [],
    mode: null,
  },
  ...{ accountCeilings: [], creditEnforced: false, balanceNanos: 0n, accountHeldNanos: 0n },
  ...{ batchModels: null, holdFloor: null, overLimit: null },
}

const budget = (spentNanos: bigint, heldNanos: bigint, capNanos = 100n): Budget => ({
  ...{ scope: 'key', period: 'month', spentNanos, heldNanos, capNanos, resetsAtMs: 9_000 },
})

const admit = (holdNanos: bigint, holdListNanos: bigint, accountHoldNanos = holdNanos): Decision => ({
  ...{ kind: 'admit', holdNanos, holdListNanos, accountHoldNanos },
})
const ADMITTED = admit(10n, 20n)
const refuse = (refusal: Extract<Decision, { kind: 'refuse' }>['refusal']): Decision => ({
  kind: 'refuse',
  refusal,
})
const waitForBudget = (of: Budget): Decision => ({ kind: 'wait', by: { limit: 'budget', budget: of } })
const WAIT_FOR_CREDIT: Decision = { kind: 'wait', by: { limit: 'credit' } }

type Case = readonly [
  what: string,
  opening: Partial<CallOpening>,
  keyState: Partial<KeyState>,
  decision: Decision,
]

const FREE = { hold: { kind: 'none' } } as const
const UNBOUNDED = { hold: { kind: 'unbounded' } } as const
const ALLOWED = { allowedModels: ['m', 'n'] }
const credit = (balanceNanos: bigint, heldNanos = 0n) => ({
  ...{ creditEnforced: true, balanceNanos, accountHeldNanos: heldNanos },
})
const unratable = (when: 'always' | 'limited' | 'never') =>
  ({ unratable: { reason: 'model_not_priced', refuse: when } }) as const
const batch = (names: readonly string[] = []) => ({ models: { names, unknown: null, batchFile: 'file_1' } })
const NOT_PRICED = refuse({ reason: 'model_not_priced' })
const EXPIRED = refuse({ reason: 'expired_key' })
const REVOKED = refuse({ reason: 'revoked_key' })
const AMBIGUOUS = refuse({ reason: 'ambiguous_body', detail: 'twice' })
const STRANGER = refuse({ reason: 'model_not_allowed', model: 'x' })
const SUSPENDED = refuse({ reason: 'account_suspended' })
const EXHAUSTED = refuse({ reason: 'credit_exhausted' })

const SPENT_DAY: Budget = { ...budget(5n, 0n, 5n), period: 'day' }
const OF_ACCOUNT: Budget = { ...budget(100n, 0n), scope: 'account' }
const BATCH = { hold: { kind: 'bound', nanos: 120n, listNanos: 120n, neededNanos: 90n } } as const
const ODD_BATCH = { hold: { kind: 'unbounded', neededNanos: 100n } } as const

const CASES: readonly Case[] = [
  ['a key without limits', {}, {}, ADMITTED],

  ['a key that expires later', {}, { expiresAtMs: NOW + 1 }, ADMITTED],
  ['a key that expires now', {}, { expiresAtMs: NOW }, EXPIRED],
  ['a revoked key', {}, { revokedAtMs: 1 }, REVOKED],
  ['a key that was revoked and has expired', {}, { revokedAtMs: 1, expiresAtMs: 1 }, REVOKED],
  ['a free call with a revoked key', FREE, { revokedAtMs: 1 }, REVOKED],
  ['a key of a suspended account', {}, { isSuspended: true }, SUSPENDED],
  ['a free call of a suspended account', FREE, { isSuspended: true }, SUSPENDED],
  ['a revoked key of a suspended account', {}, { isSuspended: true, revokedAtMs: 1 }, REVOKED],
  ['what has begun, with a revoked key', { hasBegun: true }, { revokedAtMs: 1 }, ADMITTED],
  ['what has begun, with a key that has expired', { hasBegun: true }, { expiresAtMs: 1 }, ADMITTED],

  ['an ambiguous body without limits', { ambiguity: 'twice' }, {}, ADMITTED],
  ['an ambiguous body under a cap', { ambiguity: 'twice' }, { keyCeilings: [budget(0n, 0n)] }, AMBIGUOUS],
  ['an ambiguous body with a list of models', { ambiguity: 'twice' }, ALLOWED, AMBIGUOUS],
  ['an ambiguous body under credit', { ambiguity: 'twice' }, credit(50n), AMBIGUOUS],

  ['a model of the list', {}, ALLOWED, ADMITTED],
  [
    'a model whose name begins like one of the list',
    { models: { ...NAMED, names: ['x'] } },
    { allowedModels: ['', 'xy', 'X'] },
    STRANGER,
  ],
  ['a model beside the list', { models: { ...NAMED, names: ['m', 'x'] } }, ALLOWED, STRANGER],
  ['any model without a list', { models: { ...NAMED, names: ['x'] } }, {}, ADMITTED],
  ['models that are unknown, without a list', { models: { ...NAMED, unknown: 'stored' } }, {}, ADMITTED],
  [
    'models that are unknown',
    { models: { ...NAMED, unknown: 'stored' } },
    ALLOWED,
    refuse({ reason: 'models_unknown', detail: 'stored' }),
  ],
  [
    'a batch of a file of another key',
    batch(['m']),
    ALLOWED,
    refuse({ reason: 'models_unknown', detail: FOREIGN_FILE }),
  ],
  ['a batch of a file of another key, without a list', batch(), {}, ADMITTED],
  ['a batch of allowed models', batch(), { ...ALLOWED, batchModels: ['m', 'n'] }, ADMITTED],
  ['a batch with another model', batch(['m']), { ...ALLOWED, batchModels: ['x'] }, STRANGER],
  ['a batch that names another model itself', batch(['x']), { ...ALLOWED, batchModels: ['m'] }, STRANGER],
  ['models of a batch for a call that is none', {}, { ...ALLOWED, batchModels: ['x'] }, ADMITTED],

  ['what cannot be rated and is always refused', unratable('always'), {}, NOT_PRICED],
  ['what cannot be rated, without a limit', unratable('limited'), {}, ADMITTED],
  ['what cannot be rated, with a list of models', unratable('limited'), ALLOWED, ADMITTED],
  ['what cannot be rated, under a cap', unratable('limited'), { keyCeilings: [budget(0n, 0n)] }, NOT_PRICED],
  ['what cannot be rated, under credit', unratable('limited'), credit(50n), NOT_PRICED],
  ['what cannot be rated and never is refused', unratable('never'), credit(50n), ADMITTED],

  ['a cap with room', {}, { keyCeilings: [budget(98n, 1n)] }, admit(10n, 20n, 1n)],
  ['a cap with room for all of the hold', {}, { keyCeilings: [budget(50n, 0n)] }, ADMITTED],
  [
    'a spent cap behind one with room',
    {},
    { keyCeilings: [budget(0n, 0n), SPENT_DAY] },
    refuse({ reason: 'budget_exceeded', budget: SPENT_DAY }),
  ],
  [
    'a spent cap behind one that is held',
    {},
    { keyCeilings: [budget(99n, 1n), SPENT_DAY] },
    refuse({ reason: 'budget_exceeded', budget: SPENT_DAY }),
  ],
  [
    'a spent ceiling of the account',
    {},
    { accountCeilings: [OF_ACCOUNT] },
    refuse({ reason: 'budget_exceeded', budget: OF_ACCOUNT }),
  ],
  [
    'a cap that is held, of a settled budget',
    {},
    { keyCeilings: [budget(99n, 1n)], mode: 'settled' },
    ADMITTED,
  ],
  [
    'a cap that is held, of an exact budget',
    { heldCounts: false },
    { keyCeilings: [budget(99n, 1n)], mode: 'exact' },
    waitForBudget(budget(99n, 1n)),
  ],
  [
    'a batch that fits but for its most expensive line',
    BATCH,
    { keyCeilings: [budget(1n, 0n)] },
    admit(120n, 120n, 99n),
  ],
  [
    'a batch that never fits',
    BATCH,
    { keyCeilings: [budget(10n, 0n)] },
    refuse({ reason: 'batch_exceeds_budget', neededNanos: 90n, budget: budget(10n, 0n) }),
  ],
  ['a batch that fits later', BATCH, { keyCeilings: [budget(1n, 9n)] }, waitForBudget(budget(1n, 9n))],
  [
    'a batch that is larger than the credit',
    BATCH,
    credit(90n),
    refuse({ reason: 'batch_exceeds_budget', neededNanos: 90n, budget: null }),
  ],
  ['a batch that fits into the credit later', BATCH, credit(91n, 1n), WAIT_FOR_CREDIT],
  [
    'a batch with a line that nothing bounds, whose other lines do not fit',
    ODD_BATCH,
    { keyCeilings: [budget(0n, 0n)] },
    refuse({ reason: 'batch_exceeds_budget', neededNanos: 100n, budget: budget(0n, 0n) }),
  ],
  [
    "a batch that fits under its key's cap, and not under its account's",
    BATCH,
    { keyCeilings: [budget(0n, 0n)], accountCeilings: [{ ...OF_ACCOUNT, spentNanos: 10n }] },
    refuse({ reason: 'batch_exceeds_budget', neededNanos: 90n, budget: { ...OF_ACCOUNT, spentNanos: 10n } }),
  ],
  [
    'a cap that is spent',
    {},
    { keyCeilings: [budget(100n, 0n)] },
    refuse({ reason: 'budget_exceeded', budget: budget(100n, 0n) }),
  ],
  ['a free call under a cap that is spent', FREE, { keyCeilings: [budget(100n, 0n)] }, admit(0n, 0n)],
  ['a cap that is held', {}, { keyCeilings: [budget(99n, 1n)] }, waitForBudget(budget(99n, 1n))],
  [
    'a cap that is held where that does not count',
    { heldCounts: false },
    { keyCeilings: [budget(99n, 1n)] },
    ADMITTED,
  ],
  ['a free call under a cap that is held', FREE, { keyCeilings: [budget(99n, 1n)] }, admit(0n, 0n)],

  ['credit', {}, credit(1n), ADMITTED],
  ['credit that is used up', {}, credit(0n), EXHAUSTED],
  ['a free call without credit', FREE, credit(0n), admit(0n, 0n)],
  ['a balance below zero that is not enforced', {}, { balanceNanos: -5n }, ADMITTED],
  ['credit that is held', {}, credit(5n, 5n), WAIT_FOR_CREDIT],
  ['credit that is held where that does not count', { heldCounts: false }, credit(5n, 5n), ADMITTED],
  [
    'a cap with room and credit that is held',
    {},
    { keyCeilings: [budget(0n, 0n)], ...credit(5n, 5n) },
    WAIT_FOR_CREDIT,
  ],
  [
    'a cap that is spent and credit that is used up',
    {},
    { keyCeilings: [budget(100n, 0n)], ...credit(0n) },
    refuse({ reason: 'budget_exceeded', budget: budget(100n, 0n) }),
  ],
  [
    'a cap that is held and credit that is used up',
    {},
    { keyCeilings: [budget(99n, 1n)], ...credit(0n) },
    EXHAUSTED,
  ],

  ['a bound below what was learned', {}, { holdFloor: { nanos: 11n, listNanos: 21n } }, admit(11n, 21n)],
  ['a bound above what was learned', {}, { holdFloor: { nanos: 9n, listNanos: 19n } }, ADMITTED],
  ['an unbounded call without limits', UNBOUNDED, {}, admit(UNBOUNDED_NANOS, UNBOUNDED_NANOS)],
  ['an unbounded call under a cap', UNBOUNDED, { keyCeilings: [budget(30n, 20n)] }, admit(50n, 50n)],
  [
    'an unbounded call under a large cap',
    UNBOUNDED,
    { keyCeilings: [budget(0n, 0n, 2n * HOLD_NANOS_MAX)] },
    admit(HOLD_NANOS_MAX, UNBOUNDED_NANOS, UNBOUNDED_NANOS),
  ],
  [
    'an unbounded call under a cap that is held more than whole, where that does not count',
    { ...UNBOUNDED, heldCounts: false },
    { keyCeilings: [budget(50n, 80n)] },
    admit(0n, 0n),
  ],
  ['an unbounded call under credit', UNBOUNDED, credit(50n, 20n), admit(30n, 30n)],
  [
    'an unbounded call under much credit',
    UNBOUNDED,
    credit(5_000n * NANOS_PER_USD),
    admit(UNBOUNDED_NANOS, UNBOUNDED_NANOS),
  ],
]

for (const [what, opening, keyState, decision] of CASES) {
  test(`${what}: ${decision.kind}`, () => {
    assert.deepEqual(decideAdmission({ ...OPENING, ...opening }, { ...KEY_STATE, ...keyState }), decision)
  })
}

test('the first check that fails is the answer, in this order', () => {
  const all = { ...KEY_STATE, ...ALLOWED, ...credit(0n), revokedAtMs: 1 }
  const opening = {
    ...{ ...OPENING, ambiguity: 'twice', models: { ...NAMED, names: ['x'], unknown: 'stored' } },
    ...unratable('always'),
  }
  const reasonOf = (asked: CallOpening, keyState: KeyState) => {
    const decision = decideAdmission(asked, keyState)
    return decision.kind === 'refuse' ? decision.refusal.reason : decision.kind
  }
  const usable = { ...all, revokedAtMs: null }
  assert.deepEqual(
    [
      reasonOf(opening, all),
      reasonOf(opening, usable),
      reasonOf({ ...opening, ambiguity: null }, usable),
      reasonOf({ ...opening, ambiguity: null, models: NAMED }, usable),
      reasonOf({ ...opening, ambiguity: null, models: NAMED, unratable: null }, usable),
    ],
    ['revoked_key', 'ambiguous_body', 'model_not_allowed', 'model_not_priced', 'credit_exhausted'],
  )
})
