import assert from 'node:assert/strict'
import type { OverLimit } from '../../src/keys/key-store.ts'
import type { BlockedBy, Budget, CallOpening, CallRefusal, Reservation } from '../../src/ledger/call.ts'
import { decideAdmission, type KeyState } from '../../src/ledger/decide-admission.ts'
import { opening } from '../store/conformance/fixtures.ts'
import { test } from '../support/suite.ts'

/** The state of a key without limits. */
const FREE: KeyState = {
  revokedAtMs: null,
  expiresAtMs: null,
  isSuspended: false,
  allowedModels: null,
  keyCeilings: [],
  accountCeilings: [],
  creditEnforced: false,
  balanceNanos: 0n,
  accountHeldNanos: 0n,
  mode: null,
  overLimit: null,
  batchModels: null,
  overrunNanos: 0n,
  accountShortNanos: 0n,
}

const budget = (spent: number, held: number, cap: number, more: Partial<Budget> = {}): Budget => ({
  ...{ scope: 'key', period: 'month', resetsAtMs: 0 },
  ...{ spentNanos: BigInt(spent), heldNanos: BigInt(held), capNanos: BigInt(cap) },
  ...more,
})
const onKey = (...figures: readonly [number, number, number]) => ({ keyCeilings: [budget(...figures)] })
const onAccount = (...figures: readonly [number, number, number]) => ({
  accountCeilings: [budget(...figures, { scope: 'account' })],
})
const credit = (balance: number, held = 0) => ({
  creditEnforced: true,
  balanceNanos: BigInt(balance),
  accountHeldNanos: BigInt(held),
})

const bound = (nanos: number, needed?: number): { readonly hold: Reservation } => ({
  hold: {
    ...{ kind: 'bound', nanos: BigInt(nanos), listNanos: BigInt(2 * nanos) },
    ...(needed === undefined ? {} : { neededNanos: BigInt(needed) }),
  },
})
const UNBOUNDED = { hold: { kind: 'unbounded' }, unboundedNanos: 500n } as const
const NO_HOLD = { hold: { kind: 'none' } } as const

const models = (names: readonly string[], more: Partial<CallOpening['models']> = {}) => ({
  models: { names, unknown: null, batchFile: null, ...more },
})
const CLAUDE = { allowedModels: ['claude-*', 'gpt-6'] }
const OVER_LIMIT: OverLimit = {
  reason: 'over_limit',
  code: 'rate_limit_exceeded',
  message: 'Too many.',
  retryAfterSeconds: 7,
}
const unratable = (
  reason: 'model_not_priced' | 'endpoint_not_metered',
  refuse: 'always' | 'limited' | 'never',
) => ({ unratable: { reason, refuse } })

/** Holds against the budget, at list price and against the account. */
type Holds = readonly [number, number, number]
type Expected = Holds | CallRefusal['reason'] | 'wait for budget' | 'wait for credit'
type Case = readonly [
  name: string,
  opening: Partial<CallOpening>,
  keyState: Partial<KeyState>,
  expected: Expected,
]

const CASES: readonly Case[] = [
  // The key and its account
  ['a key without limits holds the bound', bound(100), {}, [100, 200, 100]],
  ['a revoked key', {}, { revokedAtMs: 1 }, 'revoked_key'],
  ['an expired key', { atMs: 5 }, { expiresAtMs: 5 }, 'expired_key'],
  ['a key one millisecond before it expires', { atMs: 4, ...bound(1) }, { expiresAtMs: 5 }, [1, 2, 1]],
  ['a suspended account', {}, { isSuspended: true }, 'account_suspended'],
  ['revocation before suspension', {}, { isSuspended: true, revokedAtMs: 1 }, 'revoked_key'],
  [
    'a revoked key whose call upstream has begun',
    { hasBegun: true, ...bound(3) },
    { revokedAtMs: 1 },
    [3, 6, 3],
  ],
  ['a spent key whose call upstream has begun', { hasBegun: true }, onKey(9, 0, 9), 'budget_exceeded'],
  // What the request says
  ['an ambiguous body of a key without limits', { ambiguity: 'twice', ...bound(1) }, {}, [1, 2, 1]],
  ['an ambiguous body under a cap', { ambiguity: 'twice' }, onKey(0, 0, 9), 'ambiguous_body'],
  ['an ambiguous body under an allowlist', { ambiguity: 'twice' }, CLAUDE, 'ambiguous_body'],
  ['an ambiguous body under credit', { ambiguity: 'twice' }, credit(9), 'ambiguous_body'],
  ['an allowed model', { ...models(['claude-haiku-5-5']), ...bound(1) }, CLAUDE, [1, 2, 1]],
  ['a model that is not allowed by its case', models(['Claude-haiku-5-5']), CLAUDE, 'model_not_allowed'],
  [
    'any model of a key without an allowlist',
    { ...models(['x'], { unknown: 'a stored prompt' }), ...bound(1) },
    {},
    [1, 2, 1],
  ],
  ['a model that is not allowed', models(['claude-haiku-5-5', 'gpt-6-luna']), CLAUDE, 'model_not_allowed'],
  [
    'models that cannot be known',
    models(['gpt-6'], { unknown: 'a stored prompt' }),
    CLAUDE,
    'models_unknown',
  ],
  [
    'a model that is not allowed before models that cannot be known',
    models(['other'], { unknown: 'a stored prompt' }),
    CLAUDE,
    'model_not_allowed',
  ],
  [
    'a batch file that this key did not upload',
    models([], { batchFile: 'file-1' }),
    CLAUDE,
    'batch_file_unknown',
  ],
  [
    'a batch file with a model that is not allowed',
    models([], { batchFile: 'file-1' }),
    { ...CLAUDE, batchModels: ['other'] },
    'model_not_allowed',
  ],
  // Calls that cannot be rated
  [
    'a model without a price under a cap',
    unratable('model_not_priced', 'limited'),
    onKey(0, 0, 9),
    'model_not_priced',
  ],
  [
    '… under an allowlist',
    { ...unratable('model_not_priced', 'limited'), ...models(['gpt-6']), ...NO_HOLD },
    CLAUDE,
    [0, 0, 0],
  ],
  ['… where every key is refused', unratable('model_not_priced', 'always'), {}, 'model_not_priced'],
  [
    '… where no key is refused',
    { ...unratable('model_not_priced', 'never'), ...NO_HOLD },
    onKey(9, 0, 9),
    [0, 0, 0],
  ],
  [
    'an endpoint that is not metered, under an allowlist',
    unratable('endpoint_not_metered', 'limited'),
    CLAUDE,
    'endpoint_not_metered',
  ],
  [
    'an endpoint that is not metered before a model that is not allowed',
    { ...unratable('endpoint_not_metered', 'limited'), ...models(['other']) },
    CLAUDE,
    'endpoint_not_metered',
  ],
  [
    'a model that is not allowed before its missing price',
    { ...unratable('model_not_priced', 'always'), ...models(['other']) },
    CLAUDE,
    'model_not_allowed',
  ],
  // The request rate
  ['a call over the request rate', {}, { overLimit: OVER_LIMIT }, 'over_limit'],
  [
    'a call that does not count as a request',
    { isRequest: false, ...bound(1) },
    { overLimit: OVER_LIMIT },
    [1, 2, 1],
  ],
  ['the request rate before a spent budget', {}, { overLimit: OVER_LIMIT, ...onKey(9, 0, 9) }, 'over_limit'],
  // Ceilings
  ['a free call of a spent key', NO_HOLD, onKey(9, 0, 9), [0, 0, 0]],
  ['a spent budget', bound(1), onKey(9, 0, 9), 'budget_exceeded'],
  ['a spent budget in settled mode', { ...bound(1), countsHolds: false }, onKey(9, 0, 9), 'budget_exceeded'],
  ['a spent account', bound(1), { ...onKey(0, 0, 9), ...onAccount(9, 0, 9) }, 'budget_exceeded'],
  ['a cap of 0', bound(0), onKey(0, 0, 0), 'budget_exceeded'],
  ['a held budget', bound(1), onKey(5, 4, 9), 'wait for budget'],
  ['the last nanodollar of a budget admits any call', bound(100), onKey(5, 3, 9), [100, 200, 1]],
  ['a held budget in settled mode', { ...bound(7), countsHolds: false }, onKey(5, 4, 9), [7, 14, 7]],
  ['a key in settled mode', bound(7), { ...onKey(5, 4, 9), mode: 'settled' }, [7, 14, 7]],
  [
    'a key in exact mode',
    { ...bound(7), countsHolds: false },
    { ...onKey(5, 4, 9), mode: 'exact' },
    'wait for budget',
  ],
  ['a held account', bound(1), onAccount(5, 4, 9), 'wait for budget'],
  [
    'a held account of a key in settled mode',
    bound(1),
    { ...onAccount(5, 4, 9), mode: 'settled' },
    'wait for budget',
  ],
  ['a held account in settled mode', { ...bound(1), countsHolds: false }, onAccount(5, 4, 9), [1, 2, 1]],
  [
    'an exhausted ceiling before a held one',
    bound(1),
    { ...onKey(5, 4, 9), ...onAccount(9, 0, 9) },
    'budget_exceeded',
  ],
  [
    'a hold counts against the account at most what the key has left',
    bound(100),
    { ...onKey(2, 3, 9), ...onAccount(0, 0, 50) },
    [100, 200, 4],
  ],
  // Credit
  ['credit that is left', bound(100), credit(1), [100, 200, 100]],
  ['credit that is spent', bound(1), credit(0), 'credit_exhausted'],
  ['credit that is held', bound(1), credit(9, 9), 'wait for credit'],
  ['credit that is held, in settled mode', { ...bound(1), countsHolds: false }, credit(9, 9), [1, 2, 1]],
  ['a spent budget before spent credit', bound(1), { ...onKey(9, 0, 9), ...credit(0) }, 'budget_exceeded'],
  // Batches: all lines but the most expensive one must fit
  ['a batch that fits', bound(100, 8), onKey(0, 0, 9), [100, 200, 9]],
  [
    'a batch that fits, but not with the surcharge',
    bound(100, 8),
    { ...onKey(0, 0, 9), overrunNanos: 30n },
    [130, 230, 9],
  ],
  ['a batch that could never fit', bound(100, 9), onKey(0, 0, 9), 'batch_exceeds_budget'],
  ['a batch that fits once other holds are gone', bound(100, 6), onKey(0, 3, 9), 'wait for budget'],
  ['a batch that its credit could never cover', bound(100, 9), credit(9), 'batch_exceeds_budget'],
  [
    'a batch that its credit covers once other holds are gone',
    bound(100, 6),
    credit(9, 3),
    'wait for credit',
  ],
  // Calls of class Unknown
  ['an unbounded call of a key without limits', UNBOUNDED, {}, [500, 500, 500]],
  ['an unbounded call holds the rest of its key', UNBOUNDED, onKey(100, 100, 9_000), [8_800, 500, 500]],
  ['an unbounded call holds what the account has left', UNBOUNDED, onAccount(100, 100, 300), [100, 100, 100]],
  [
    'an unbounded call holds what is left of the credit',
    UNBOUNDED,
    { ...onAccount(0, 0, 900), ...credit(90, 30) },
    [60, 60, 60],
  ],
  // Holds that are short, because their keys have little left
  [
    'the only short hold of an account',
    { ...bound(100), unboundedNanos: 50n },
    { ...onKey(0, 0, 9), ...onAccount(0, 0, 50) },
    [100, 200, 9],
  ],
  [
    'another short hold, short by little together',
    { ...bound(100), unboundedNanos: 101n },
    { ...onKey(0, 0, 9), ...onAccount(0, 0, 50), accountShortNanos: 10n },
    [100, 200, 9],
  ],
  [
    'another short hold, short by more together',
    { ...bound(100), unboundedNanos: 100n },
    { ...onKey(0, 0, 9), ...onAccount(0, 0, 50), accountShortNanos: 10n },
    'wait for budget',
  ],
  [
    'another short hold under enforced credit',
    { ...bound(100), unboundedNanos: 100n },
    { ...onKey(0, 0, 9), ...credit(50), accountShortNanos: 10n },
    'wait for credit',
  ],
  [
    'another short hold of an account without limits',
    { ...bound(100), unboundedNanos: 100n },
    { ...onKey(0, 0, 9), accountShortNanos: 10n },
    [100, 200, 9],
  ],
  [
    'a hold in settled mode is not short',
    { ...bound(100), unboundedNanos: 1n },
    { ...onKey(0, 0, 9), ...onAccount(0, 0, 50), mode: 'settled', accountShortNanos: 10n },
    [100, 200, 100],
  ],
  // The surcharge after an overrun
  ['a surcharge', bound(100), { overrunNanos: 30n }, [130, 230, 130]],
  ['a surcharge is limited', { ...bound(100), unboundedNanos: 7n }, { overrunNanos: 30n }, [107, 207, 107]],
  ['a bound of 0 gets no surcharge', bound(0), { overrunNanos: 30n }, [0, 0, 0]],
  // Checks that take over a hold
  ['a check of a held budget', { ...bound(1), isCheckOnly: true }, onKey(5, 4, 9), [0, 0, 0]],
  ['a check of a revoked key', { ...bound(1), isCheckOnly: true }, { revokedAtMs: 1 }, 'revoked_key'],
  ['a check of a spent budget', { ...bound(1), isCheckOnly: true }, onKey(9, 0, 9), 'budget_exceeded'],
]

const waitFor = (by: BlockedBy): Expected => `wait for ${by.limit}`

for (const [name, more, keyState, expected] of CASES) {
  test(`admission: ${name}`, () => {
    const decision = decideAdmission(opening('req_1', 'a', more), { ...FREE, ...keyState })
    const decided =
      decision.kind === 'refuse'
        ? decision.refusal.reason
        : decision.kind === 'wait'
          ? waitFor(decision.by)
          : [decision.holdNanos, decision.holdListNanos, decision.accountHoldNanos].map(Number)
    assert.deepEqual(decided, expected)
  })
}
