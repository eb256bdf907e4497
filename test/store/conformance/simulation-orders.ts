import assert from 'node:assert/strict'
import { inspect, isDeepStrictEqual } from 'node:util'
import type { Move } from './simulation-moves.ts'
import { copyWorld, type World } from './simulation-world.ts'

export interface Played {
  readonly move: Move
  /** `rejected` if the store threw. */
  readonly answer: unknown
  readonly error: string | null
}

/** Resolves with the world after an order of the moves that explains all answers and all later reads. */
export function explain(before: World, played: readonly Played[], seen: readonly Played[]): World {
  const after = findOrder(before, played, seen)
  if (after !== null) return after
  // There is no such order. The difference from the order sent says most.
  const world = copyWorld(before)
  const others = played.length > 1 ? `; no order explains these ${played.length} answers` : ''
  for (const { move, answer, error } of [...played, ...seen]) {
    const expected = move.play(world)
    if (isDeepStrictEqual(answer, expected)) continue
    const said = `the store: ${error ?? inspect(answer)}\nthe world: ${inspect(expected)}`
    assert.fail(`${move.words}${others}\n${said}`)
  }
  throw new Error('no order explains these answers, and yet the order of asking does')
}

function findOrder(before: World, played: readonly Played[], seen: readonly Played[]): World | null {
  if (played.length === 0) return seen.every((look) => answersLike(look, before)) ? before : null
  for (const [i, next] of played.entries()) {
    const world = copyWorld(before)
    if (!answersLike(next, world)) continue
    const found = findOrder(world, played.toSpliced(i, 1), seen)
    if (found !== null) return found
  }
  return null
}

function answersLike({ move, answer }: Played, world: World): boolean {
  return isDeepStrictEqual(answer, move.play(world))
}
