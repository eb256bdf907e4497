import assert from 'node:assert/strict'
import type { Store } from '../../../src/store/store.ts'
import { assertCrossings, budgetEvents } from '../../support/budget-events.ts'
import { Random } from '../../support/random.ts'
import { everyNth } from '../../support/scale.ts'
import { assertConserved } from './conservation.ts'
import { addWebhook } from './event-fixtures.ts'
import type { StoreUnderTest } from './fixtures.ts'
import { OneCallBound } from './simulation-bound.ts'
import { chooseInstant } from './simulation-choices.ts'
import { interruptMove, lookAtAccount, lookAtHolds, lookAtKey, type Move } from './simulation-moves.ts'
import { explain, type Played } from './simulation-orders.ts'
import { ACCOUNTS, Player, type Rules } from './simulation-player.ts'
import { compareTables } from './simulation-tables.ts'
import { createWorld, EPOCH_MS, endOf, type World } from './simulation-world.ts'

/** A store that can die and be reopened by the next process. */
export interface MortalStore extends StoreUnderTest {
  /** The process dies, and the next one opens what it left; `store` is then another object. */
  die(): Promise<void>
}

export type OpenMortalStore = () => Promise<MortalStore>

export const RULES: readonly Rules[] = [
  { words: 'exact budgets', countsHolds: true, overruns: false },
  { words: 'exact budgets with overruns and late settlements', countsHolds: true, overruns: true },
  { words: 'settled budgets', countsHolds: false, overruns: true },
]

/** The rules of a run follow from its seed, so that the seed alone is enough to repeat the run. */
export function rulesOf(seed: number): Rules {
  const rules = RULES[seed % RULES.length]
  assert.ok(rules !== undefined, `${seed} is not a seed`)
  return rules
}

const ENDED_CALLS_MAX = 60

/** Comparing all tables takes most of the time. At full scale they are compared at each step. */
const AUDITED_NTH = 5

export class SimulationRun {
  readonly #subject: MortalStore
  readonly #random: Random
  readonly #player: Player
  readonly #bound: OneCallBound | null
  readonly #seed: number
  #world: World
  #step = 0
  #doing = ''
  readonly tally = new Map<string, number>()

  constructor(subject: MortalStore, seed: number) {
    const rules = rulesOf(seed)
    this.#subject = subject
    this.#seed = seed
    this.#random = new Random(seed)
    this.#player = new Player(this.#random, rules)
    // In settled mode, calls in flight may exceed a limit together: there is no such bound.
    this.#bound = rules.countsHolds ? new OneCallBound(rules.overruns) : null
    this.#world = createWorld(EPOCH_MS + this.#random.below(20 * 86_400_000), ACCOUNTS)
  }

  async play(steps: number): Promise<void> {
    try {
      for (const accountId of ACCOUNTS) {
        if (accountId !== 'default') await this.#subject.addAccount(accountId)
      }
      await addWebhook(this.#subject.store, 'simulation', { createdAtMs: 0 })
      const isAudited = everyNth(AUDITED_NTH)
      for (let i = 0; i < steps; i++) {
        this.#step += 1
        await this.#playOne()
        if (isAudited(i)) await this.#audit()
      }
      await this.#audit()
      await this.#checkEvents()
    } catch (error) {
      const where = `seed ${this.#seed} (${rulesOf(this.#seed).words}), step ${this.#step}`
      const text = error instanceof Error ? error.message : String(error)
      throw new Error(`${where}, ${this.#doing}\n${text}`, { cause: error })
    }
  }

  async #playOne(): Promise<void> {
    const next = this.#random.weighted([
      [1, () => this.#die()],
      [5, () => this.#passTime()],
      [44, () => this.#ask(this.#player.next(this.#world))],
    ])
    await next()
  }

  async #die(): Promise<void> {
    this.#doing = 'the process dies'
    this.#count('death')
    await this.#subject.die()
    // The crash loses no acknowledged command and changes nothing else.
    await this.#ask([], 'after the process died')
    await this.#ask([interruptMove(this.#world.nowMs)])
  }

  async #passTime(): Promise<void> {
    this.#world.nowMs = chooseInstant(this.#random, this.#world)
    await this.#ask([], `as time has come to ${this.#world.nowMs}`)
  }

  async #ask(moves: readonly Move[], when = 'asking at once'): Promise<void> {
    const { store } = this.#subject
    this.#doing = `${when}:${moves.map((move) => `\n  ${move.words}`).join('')}`
    const played = await sendAll(store, moves)
    const seen = await sendAll(store, this.#looks(moves))
    this.#world = explain(this.#world, played, seen)
    for (const { answer } of played) this.#count(wordFor(answer))
    for (const event of this.#world.events.splice(0)) this.#bound?.note(event, this.#world)
    this.#bound?.check(this.#world)
    this.#forgetOldCalls()
  }

  #looks(moves: readonly Move[]): Move[] {
    const { accounts, keys, nowMs } = this.#world
    const usable = [...keys.values()].filter((key) => endOf(key, nowMs) === null)
    return [
      ...[...accounts.keys()].map(lookAtAccount),
      ...usable.map((key) => lookAtKey(key.accountId, key.id, nowMs)),
      ...moves.flatMap((move) => move.looks(this.#world)),
      ...(moves.some((move) => move.reservesRest) ? [lookAtHolds(this.#subject.rows)] : []),
    ]
  }

  async #audit(): Promise<void> {
    const rows = readOnce(this.#subject.rows)
    await assertConserved({ rows })
    await compareTables({ rows }, this.#world)
  }

  /** Every budget event occurred exactly once. */
  async #checkEvents(): Promise<void> {
    const { rows } = this.#subject
    const [events, calls] = await Promise.all([rows('event'), rows('call')])
    for (const { id } of this.#world.keys.values()) assertCrossings(budgetEvents(events, id), calls)
  }

  #forgetOldCalls(): void {
    const { calls } = this.#world
    const ended = [...calls.values()].filter((call) => call.state !== 'in_flight')
    for (const call of ended.slice(0, Math.max(0, ended.length - ENDED_CALLS_MAX))) calls.delete(call.id)
  }

  #count(word: string): void {
    this.tally.set(word, (this.tally.get(word) ?? 0) + 1)
  }
}

/** Reads each table once: the ledger does not change meanwhile, and to read the calls takes half of the time. */
function readOnce(rows: StoreUnderTest['rows']): StoreUnderTest['rows'] {
  const read = new Map<string, ReturnType<typeof rows>>()
  return (table) => {
    const known = read.get(table) ?? rows(table)
    read.set(table, known)
    return known
  }
}

/** Sends all moves in one iteration of the event loop, so that they reach the store together. */
function sendAll(store: Store, asked: readonly Move[]): Promise<Played[]> {
  return Promise.all(
    asked.map(async (move) => {
      try {
        return { move, answer: withoutLastUse(await move.send(store)), error: null }
      } catch (error) {
        return { move, answer: 'rejected', error: String(error) }
      }
    }),
  )
}

/** The last use of a key follows from the log, of which the model forgets old calls. */
function withoutLastUse(answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null || Array.isArray(answer)) return answer
  const { lastUsedAtMs: used, ...others } = answer as Readonly<Record<string, unknown>>
  const rest = Object.fromEntries(
    Object.entries(others).map(([name, value]) => [name, withoutLastUse(value)]),
  )
  return used === undefined ? rest : { ...rest, lastUsedAtMs: null }
}

function wordFor(answer: unknown): string {
  if (typeof answer === 'number') return answer === 0 ? 'none interrupted' : 'some interrupted'
  if (answer === undefined) return 'kept'
  if (typeof answer !== 'object' || answer === null) return String(answer)
  if ('refusal' in answer) return (answer.refusal as { reason: string }).reason
  if ('by' in answer) return `held by ${(answer.by as { limit: string }).limit}`
  if ('applied' in answer) return answer.applied === true ? 'applied' : 'applied before'
  return 'kind' in answer ? String(answer.kind) : 'record'
}
