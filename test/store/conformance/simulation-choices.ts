import type { NamedModels } from '../../../src/kernel/model-names.ts'
import { type KeyLimits, NO_LIMITS } from '../../../src/keys/key-store.ts'
import type { CallOpening, Reservation, Unratable } from '../../../src/ledger/call.ts'
import type { Random } from '../../support/random.ts'
import {
  accountOf,
  type CallModel,
  endOf,
  type KeyModel,
  keyOf,
  monthAt,
  monthOfKey,
  type World,
} from './simulation-world.ts'

/** Amounts are small, so that limits are met exactly and not only passed. */

const MODELS = ['claude-haiku-5-5', 'claude-opus-5', 'gpt-6', 'gpt-6-mini']
export const FILES = ['file_1', 'file_2', 'file_3']

/** Mostly a usable key; often one that ends about now. */
export function chooseKey(random: Random, world: World): KeyModel {
  const keys = [...world.keys.values()]
  const usable = keys.filter((key) => endOf(key, world.nowMs) === null)
  const ending = keys.filter((key) => Math.abs((key.expiresAtMs ?? 0) - world.nowMs) <= 1)
  if (ending.length > 0 && random.oneIn(2)) return random.pick(ending)
  return random.pick(usable.length === 0 || random.oneIn(10) ? keys : usable)
}

export function chooseModels(random: Random): readonly string[] {
  const chosen = MODELS.filter(() => random.oneIn(2))
  return chosen.length === 0 ? [random.pick(MODELS)] : chosen
}

export function chooseLimits(random: Random, world: World): KeyLimits {
  return {
    ...NO_LIMITS,
    monthlyBudgetNanos: random.oneIn(5) ? null : random.nanos(0n, 3_000n),
    allowedModels: random.oneIn(4) ? chooseModels(random) : null,
    logRequests: random.oneIn(2),
    expiresAtMs: random.oneIn(6) ? chooseExpiry(random, world) : null,
  }
}

/** A cap around the used amount of the key's month, or any cap, or none. */
export function chooseCap(random: Random, world: World, key: KeyModel): bigint | null {
  const { spentNanos, heldNanos } = monthOfKey(world, key.id, world.nowMs)
  return random.weighted<() => bigint | null>([
    [2, () => null],
    [1, () => 0n],
    [4, () => notBelowZero(spentNanos + random.nanos(-1n, 1n))],
    [4, () => notBelowZero(spentNanos + heldNanos + random.nanos(-1n, 1n))],
    [9, () => spentNanos + random.nanos(1n, 2_000n)],
  ])()
}

export function chooseExpiry(random: Random, world: World): number {
  return random.weighted([
    [3, world.nowMs + random.from(1, 5)],
    [2, world.nowMs + random.from(1, 86_400_000)],
    [2, monthAt(world.nowMs).endMs],
    [3, monthAt(world.nowMs).endMs + random.from(1, 60 * 86_400_000)],
  ])
}

/** An amount around that which makes room in the account, or any amount. */
export function chooseCredit(random: Random, world: World, accountId: string): bigint {
  const { creditedNanos, chargedNanos, heldNanos } = accountOf(world, accountId)
  const missing =
    random.pick([chargedNanos, chargedNanos + heldNanos]) - creditedNanos + random.nanos(-1n, 1n)
  if (missing > 0n && missing < 1_000_000n && random.oneIn(2)) return missing
  return random.nanos(1n, 2_500n)
}

export function chooseOpening(
  random: Random,
  world: World,
  key: KeyModel | null,
): Omit<
  CallOpening,
  | 'requestId'
  | 'digest'
  | 'method'
  | 'path'
  | 'surface'
  | 'clientIp'
  | 'userAgent'
  | 'sessionId'
  | 'priceVersion'
  | 'rating'
  | 'countsHolds'
  | 'unboundedNanos'
> {
  // Requests are decided a little later than they came, sometimes in the month after.
  const atMs = random.oneIn(6) ? world.nowMs - random.from(1, 5) : world.nowMs
  return {
    atMs,
    modelAsked: random.pick([null, 'gpt-6', 'claude-haiku-5-5']),
    hold: chooseHold(random, world, key, atMs),
    models: chooseNamed(random),
    ambiguity: random.oneIn(40) ? 'The member "model" is given twice. Send it once.' : null,
    unratable: random.oneIn(30) ? chooseUnratable(random) : null,
    hasWaited: random.oneIn(8),
    isRequest: true,
    isCheckOnly: false,
    isStanding: false,
    objectId: null,
    hasBegun: random.oneIn(20),
    socketId: null,
  }
}

function chooseHold(random: Random, world: World, key: KeyModel | null, atMs: number): Reservation {
  const bound = (nanos: bigint): Reservation => ({ kind: 'bound', nanos, listNanos: (nanos * 5n) / 4n + 1n })
  const left = key === null ? [] : leftOf(world, key, atMs).map(({ unheldNanos }) => unheldNanos)
  return random.weighted<() => Reservation>([
    [4, () => ({ kind: 'none' })],
    [3, () => ({ kind: 'unbounded' })],
    [2, () => bound(0n)],
    [2, () => bound(random.nanos(1n, 2n))],
    [20, () => bound(random.nanos(1n, 400n))],
    [3, () => bound(random.nanos(400n, 5_000n))],
    // A hold of exactly the rest, or one nanodollar more or less.
    [left.length === 0 ? 0 : 6, () => bound(notBelowZero(random.pick(left) + random.nanos(-1n, 1n)))],
  ])()
}

/** The rest under each limit of the key, before holds are taken off and after it. */
function leftOf(
  world: World,
  key: KeyModel,
  atMs: number,
): readonly { unspentNanos: bigint; unheldNanos: bigint }[] {
  const month = monthOfKey(world, key.id, atMs)
  const account = accountOf(world, key.accountId)
  const unspent: readonly (readonly [bigint | null, bigint])[] = [
    [key.monthlyBudgetNanos === null ? null : key.monthlyBudgetNanos - month.spentNanos, month.heldNanos],
    [account.creditEnforced ? account.creditedNanos - account.chargedNanos : null, account.heldNanos],
  ]
  return unspent.flatMap(([unspentNanos, heldNanos]) =>
    unspentNanos === null ? [] : [{ unspentNanos, unheldNanos: unspentNanos - heldNanos }],
  )
}

function chooseNamed(random: Random): NamedModels {
  return {
    names: random.weighted([
      [3, []],
      [1, chooseModels(random)],
      [4, [random.pick(MODELS)]],
    ]),
    unknown: random.oneIn(30) ? 'An agent chooses its model later.' : null,
    batchFile: random.oneIn(12) ? random.pick(FILES) : null,
  }
}

function chooseUnratable(random: Random): Unratable {
  return {
    reason: random.pick(['model_not_priced', 'endpoint_not_metered']),
    refuse: random.pick(['always', 'limited', 'never']),
  }
}

/** A cost, above the hold only where overruns are part of the run. Often the cost that uses a limit up exactly. */
export function chooseCost(random: Random, world: World, call: CallModel, overruns: boolean): bigint {
  const { holdNanos } = call
  if (overruns && random.oneIn(5)) return holdNanos < 5_000n ? holdNanos + random.nanos(1n, 400n) : 9_000n
  const most = holdNanos < 5_000n ? holdNanos : 1_000n
  const ends = leftOf(world, keyOf(world, call.keyId), call.startedAtMs)
    .map(({ unspentNanos }) => unspentNanos)
    .filter((nanos) => nanos > 0n && nanos <= most)
  return random.weighted<() => bigint>([
    [1, () => 0n],
    [5, () => random.nanos(0n, most)],
    [4, () => most],
    [ends.length === 0 ? 0 : 8, () => random.pick(ends)],
  ])()
}

/** The next instant: mostly a little later; sometimes just before, at or after the end of a month or of a key. */
export function chooseInstant(random: Random, world: World): number {
  const month = monthAt(world.nowMs)
  const expiries = [...world.keys.values()]
    .map((key) => key.expiresAtMs ?? 0)
    .filter((atMs) => atMs > world.nowMs && atMs < month.endMs + 2 * 86_400_000)
  return random.weighted<() => number>([
    [6, () => world.nowMs + random.from(1, 10)],
    [4, () => world.nowMs + random.from(1, 3 * 86_400_000)],
    [2, () => Math.max(world.nowMs, month.endMs - 1)],
    [1, () => month.endMs],
    [1, () => month.endMs + random.from(1, 5)],
    [1, () => month.endMs + random.from(1, 45 * 86_400_000)],
    [expiries.length === 0 ? 0 : 3, () => random.pick(expiries) - random.below(2)],
  ])()
}

const notBelowZero = (nanos: bigint): bigint => (nanos < 0n ? 0n : nanos)
