import { SYSTEM } from '../../../src/kernel/actor.ts'
import type { KeyChanges } from '../../../src/keys/key-store.ts'
import type { CallClosing } from '../../../src/ledger/call.ts'
import type { Random } from '../../support/random.ts'
import { closing, opening } from './fixtures.ts'
import * as choices from './simulation-choices.ts'
import * as moves from './simulation-moves.ts'
import { accountOf, type CallModel, endOf, type KeyModel, type World } from './simulation-world.ts'

export interface Rules {
  readonly words: string
  /** Whether holds count against limits, or only settled costs. */
  readonly countsHolds: boolean
  /** Whether calls may cost more than they held, or be settled though a crash has given their hold back. */
  readonly overruns: boolean
}

export const ACCOUNTS = ['default', 'second']

const USABLE_KEYS_MIN = 4
const OPEN_CALLS_MANY = 25

/** Decides the next moves. All choices follow from the seed and the world. */
export class Player {
  readonly #random: Random
  readonly #rules: Rules
  #calls = 0
  /** Calls that a move has interrupted. */
  readonly #interrupted = new Set<string>()
  #keys = 0
  #credits = 0

  constructor(random: Random, rules: Rules) {
    this.#random = random
    this.#rules = rules
  }

  /** The moves to send together: one move, several calls with one key, or several of any kind. */
  next(world: World): moves.Move[] {
    const missing = this.#missingKeys(world)
    if (missing.length > 0) return missing
    const several = this.#random.from(2, 6)
    return this.#random.weighted<() => moves.Move[]>([
      [6, () => [this.#anything(world)]],
      [2, () => this.#callsWithOneKey(world, several)],
      [2, () => atOnce(Array.from({ length: several }, () => this.#anything(world)))],
    ])()
  }

  #missingKeys(world: World): moves.Move[] {
    const usable = [...world.keys.values()].filter((key) => endOf(key, world.nowMs) === null).length
    return Array.from({ length: Math.max(0, USABLE_KEYS_MIN - usable) }, () => {
      const limits = choices.chooseLimits(this.#random, world)
      return moves.createMove(this.#random.pick(ACCOUNTS), this.#newKeyId(), world.nowMs, limits)
    })
  }

  #callsWithOneKey(world: World, count: number): moves.Move[] {
    const key = choices.chooseKey(this.#random, world)
    return Array.from({ length: count }, () => this.#admit(world, key))
  }

  #anything(world: World): moves.Move {
    const random = this.#random
    const key = choices.chooseKey(random, world)
    const calls = [...world.calls.values()]
    const open = calls.filter((call) => call.state === 'in_flight')
    const ended = calls.filter((call) => call.state === 'settled' || call.state === 'released')
    const interrupted = calls.filter((call) => call.state === 'interrupted')
    const settleWeight = open.length > OPEN_CALLS_MANY ? 80 : 32
    return random.weighted<() => moves.Move>([
      [36, () => this.#admit(world, random.oneIn(30) ? null : key)],
      [open.length === 0 ? 0 : settleWeight, () => this.#close(world, random.pick(open))],
      [ended.length === 0 ? 0 : 4, () => this.#close(world, random.pick(ended))],
      [interrupted.length === 0 ? 0 : 6, () => this.#close(world, random.pick(interrupted))],
      [1, () => moves.settleMove(closing('req_never_admitted'))],
      [12, () => this.#edit(world, key)],
      [2, () => moves.revokeMove(key.accountId, key.id, world.nowMs)],
      [2, () => this.#rotate(world, key)],
      [7, () => this.#credit(world)],
      [3, () => this.#keepFile(world, key)],
    ])()
  }

  #admit(world: World, key: KeyModel | null): moves.Move {
    const requestId = `req_${String(++this.#calls).padStart(6, '0')}`
    const keyId = key?.id ?? 'key_unknown'
    const more = { ...choices.chooseOpening(this.#random, world, key), countsHolds: this.#rules.countsHolds }
    return moves.admitMove(keyId, opening(requestId, keyId, more))
  }

  #close(world: World, call: CallModel): moves.Move {
    // Moves sent together do not see each other: one may interrupt a call that another settles late.
    const isInterrupted = call.state === 'interrupted' || this.#interrupted.has(call.id)
    const late = isInterrupted && !this.#rules.overruns
    const state = this.#random.oneIn(12)
      ? 'interrupted'
      : late || this.#random.oneIn(6)
        ? 'released'
        : 'settled'
    if (state === 'interrupted') this.#interrupted.add(call.id)
    const costNanos =
      state !== 'settled' ? 0n : choices.chooseCost(this.#random, world, call, this.#rules.overruns)
    const more: Partial<CallClosing> = {
      state,
      atMs: world.nowMs,
      costNanos,
      listNanos: (costNanos * 5n) / 4n,
      modelServed: this.#random.pick([null, 'gpt-6', 'claude-haiku-5-5']),
    }
    return moves.settleMove(closing(call.id, more))
  }

  #edit(world: World, key: KeyModel): moves.Move {
    const random = this.#random
    const changes = random.weighted<() => KeyChanges>([
      [7, () => ({ monthlyBudgetNanos: choices.chooseCap(random, world, key) })],
      [2, () => ({ allowedModels: random.oneIn(2) ? null : choices.chooseModels(random) })],
      [2, () => ({ expiresAtMs: random.oneIn(3) ? null : choices.chooseExpiry(random, world) })],
      [1, () => ({ logRequests: random.oneIn(2), name: `name ${random.below(100)}` })],
    ])()
    return moves.editMove(key.accountId, key.id, changes, world.nowMs)
  }

  #rotate(world: World, key: KeyModel): moves.Move {
    const until = this.#random.oneIn(2) ? null : choices.chooseExpiry(this.#random, world)
    return moves.rotateMove(key.accountId, key.id, this.#newKeyId(), world.nowMs, until)
  }

  /** Credit comes late and enforcement later, so that the states before are tested too. */
  #credit(world: World): moves.Move {
    const started = ACCOUNTS.filter((id) => accountOf(world, id).creditEnforced || this.#random.oneIn(8))
    if (started.length === 0) return this.#edit(world, choices.chooseKey(this.#random, world))
    const accountId = this.#random.pick(started)
    const { creditedNanos, creditEnforced } = accountOf(world, accountId)
    if (creditedNanos > 0n && !creditEnforced) return moves.enforceMove(accountId)
    const amountNanos = choices.chooseCredit(this.#random, world, accountId)
    const id = `crd_${++this.#credits}`
    return moves.creditMove({
      id,
      accountId,
      amountNanos,
      reason: 'top-up',
      actor: SYSTEM,
      atMs: world.nowMs,
    })
  }

  #keepFile(world: World, key: KeyModel): moves.Move {
    const { accountId, id: keyId } = key
    const models = choices.chooseModels(this.#random)
    const fileId = this.#random.pick(choices.FILES)
    return moves.fileMove({ accountId, keyId, fileId, models, bound: null, atMs: world.nowMs })
  }

  #newKeyId(): string {
    return `key_${String(++this.#keys).padStart(4, '0')}`
  }
}

function atOnce(group: readonly moves.Move[]): moves.Move[] {
  const alone = group.find(({ isAlone }) => isAlone)
  return alone === undefined ? [...group] : [alone]
}
