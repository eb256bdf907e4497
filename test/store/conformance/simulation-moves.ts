import { SYSTEM } from '../../../src/kernel/actor.ts'
import type { KeyChanges, KeyLimits, KeySuccessor } from '../../../src/keys/key-store.ts'
import type { BatchFile, NewCredit } from '../../../src/ledger/account.ts'
import type { CallClosing, CallOpening } from '../../../src/ledger/call.ts'
import type { Store } from '../../../src/store/store.ts'
import { digestOf, newKey, type StoreUnderTest } from './fixtures.ts'
import { admit } from './simulation-admission.ts'
import { interrupt, settle } from './simulation-closing.ts'
import { holdsOf, readHolds } from './simulation-tables.ts'
import { accountOf, endOf, keyOf, mustHave, recordOf, shareCap, type World } from './simulation-world.ts'

/** One command to the store, and to the world beside it. Both must answer the same. */
export interface Move {
  readonly words: string
  send(store: Store): Promise<unknown>
  play(world: World): unknown
  /** Reads everything that the move may have changed. */
  looks(world: World): readonly Move[]
  /** Other nodes add to an account while a batch reads it, so a balance that is not enforced may be a moment old. */
  readonly isAlone?: boolean
  /** An admission whose hold depends on the calls before it, and is in no answer. */
  readonly reservesRest?: boolean
}

/** A read changes nothing, so there is nothing to compare after it. */
const look = (words: string, rest: Pick<Move, 'send' | 'play'>): Move => ({ words, looks: () => [], ...rest })

export function lookAtKey(accountId: string, keyId: string, atMs: number): Move {
  return look(`get ${keyId} at ${atMs}`, {
    send: (store) => store.getKey(accountId, keyId, atMs),
    play: (world) => (world.keys.has(keyId) ? recordOf(world, keyId, atMs) : null),
  })
}

export function lookAtAccount(accountId: string): Move {
  return look(`get the balance of ${accountId}`, {
    send: (store) => store.getBalance(accountId),
    play: (world) => accountOf(world, accountId),
  })
}

export function lookAtCall(requestId: string): Move {
  return look(`get ${requestId}`, {
    async send(store) {
      const call = await store.getCall(requestId)
      if (call === null) return null
      const { keyId, accountId, state, startedAtMs, endedAtMs, costNanos, lostListNanos } = call
      const { balanceNanos, overrun } = call
      return {
        ...{ keyId, accountId, state, startedAtMs, endedAtMs },
        ...{ costNanos, lostListNanos, balanceNanos, overrun },
      }
    },
    play(world) {
      const call = world.calls.get(requestId)
      if (call === undefined) return null
      const { keyId, accountId, state, startedAtMs, endedAtMs, costNanos, balanceNanos, overrun } = call
      return {
        ...{ keyId, accountId, state, startedAtMs, endedAtMs },
        ...{ costNanos, lostListNanos: call.lostNanos, balanceNanos, overrun },
      }
    },
  })
}

export function lookAtHolds(rows: StoreUnderTest['rows']): Move {
  return look('get all holds', { send: () => readHolds(rows), play: holdsOf })
}

export function admitMove(keyId: string, opening: CallOpening): Move {
  return {
    words: `admit ${opening.requestId} with ${keyId} at ${opening.atMs}, ${holdInWords(opening)}`,
    send: (store) => store.admit({ ...opening, digest: digestOf(keyId) }),
    play: (world) => admit(world, keyId, opening),
    reservesRest: opening.hold.kind === 'unbounded',
    looks(world) {
      const call = lookAtCall(opening.requestId)
      const key = world.keys.get(keyId)
      return key === undefined ? [call] : [call, lookAtKey(key.accountId, keyId, opening.atMs)]
    },
  }
}

function holdInWords({ hold }: CallOpening): string {
  return hold.kind === 'bound' ? `holding ${hold.nanos}` : hold.kind
}

export function settleMove(closing: CallClosing): Move {
  const { requestId, state, costNanos } = closing
  return {
    words: `${state} ${requestId} for ${costNanos}`,
    send: (store) => store.settle(closing),
    play: (world) => settle(world, closing),
    looks(world) {
      const call = world.calls.get(requestId)
      if (call === undefined) return [lookAtCall(requestId)]
      return [lookAtCall(requestId), lookAtKey(call.accountId, call.keyId, call.startedAtMs)]
    },
  }
}

/** The first step of a process after another has died. */
export function interruptMove(atMs: number): Move {
  return {
    words: 'interrupt what the dead process left open',
    send: (store) => store.interruptOpenCalls(atMs),
    play: (world) => interrupt(world),
    looks: (world) =>
      [...world.calls.values()]
        .filter((call) => call.state === 'in_flight')
        .flatMap((call) => [lookAtCall(call.id), lookAtKey(call.accountId, call.keyId, call.startedAtMs)]),
  }
}

const NOT_YET = {
  ...{ personId: null, deviceUntilMs: null },
  ...{ revokedAtMs: null, lastUsedAtMs: null, rotatedFrom: null },
}

export function createMove(accountId: string, id: string, createdAtMs: number, limits: KeyLimits): Move {
  const key = newKey(id, { id, accountId, createdAtMs, ...limits })
  return {
    words: `create ${id} of ${accountId} with a cap of ${limits.monthlyBudgetNanos}`,
    send: (store) => store.createKey(key, null, SYSTEM),
    play(world) {
      const { digest: _, ...rest } = key
      const budgetId = id.replace(/^key_/, 'bud_')
      world.keys.set(id, { ...rest, ...NOT_YET, budgetId })
      return { kind: 'done', value: recordOf(world, id, createdAtMs) }
    },
    looks: () => [lookAtKey(accountId, id, createdAtMs)],
  }
}

export function editMove(accountId: string, keyId: string, changes: KeyChanges, atMs: number): Move {
  const said = Object.entries(changes).map(([name, value]) => `${name} ${String(value)}`)
  return {
    words: `edit ${keyId}: ${said.join(', ')}`,
    send: (store) => store.updateKey(accountId, keyId, changes, atMs, SYSTEM),
    play(world) {
      const key = keyOf(world, keyId)
      if (endOf(key, atMs) !== null) return { kind: 'final', key: recordOf(world, keyId, atMs) }
      world.keys.set(keyId, { ...key, ...changes })
      shareCap(world, keyId)
      return { kind: 'changed', key: recordOf(world, keyId, atMs) }
    },
    looks: () => [lookAtKey(accountId, keyId, atMs)],
  }
}

export function revokeMove(accountId: string, keyId: string, atMs: number): Move {
  return {
    words: `revoke ${keyId}`,
    send: (store) => store.revokeKey(accountId, keyId, atMs, SYSTEM),
    play(world) {
      const key = keyOf(world, keyId)
      if (endOf(key, atMs) === null) world.keys.set(keyId, { ...key, revokedAtMs: atMs })
      return recordOf(world, keyId, atMs)
    },
    looks: () => [lookAtKey(accountId, keyId, atMs)],
  }
}

export function rotateMove(
  accountId: string,
  keyId: string,
  id: string,
  atMs: number,
  oldExpiresAtMs: number | null,
): Move {
  const { digest, prefix, last4 } = newKey(id)
  const successor: KeySuccessor = { id, digest, prefix, last4, createdAtMs: atMs, oldExpiresAtMs }
  return {
    words: `rotate ${keyId} to ${id}, the old one until ${oldExpiresAtMs ?? 'as before'}`,
    send: (store) => store.rotateKey(accountId, keyId, successor, null, SYSTEM),
    play(world) {
      const old = keyOf(world, keyId)
      if (endOf(old, atMs) !== null) return { kind: 'final', key: recordOf(world, keyId, atMs) }
      const fresh = { id, prefix, last4, createdAtMs: atMs, lastUsedAtMs: null, rotatedFrom: keyId }
      world.keys.set(id, { ...old, ...fresh })
      const ends = [old.expiresAtMs, oldExpiresAtMs].filter((end) => end !== null)
      world.keys.set(keyId, { ...old, expiresAtMs: ends.length === 0 ? null : Math.min(...ends) })
      return { kind: 'done', value: recordOf(world, id, atMs) }
    },
    looks: () => [lookAtKey(accountId, keyId, atMs), lookAtKey(accountId, id, atMs)],
  }
}

export function creditMove(credit: NewCredit): Move {
  const { accountId, amountNanos } = credit
  return {
    words: `credit ${amountNanos} to ${accountId}`,
    isAlone: true,
    send: (store) => store.addCredit(credit, null),
    play(world) {
      const old = accountOf(world, accountId)
      const balance = { ...old, creditedNanos: old.creditedNanos + amountNanos }
      world.accounts.set(accountId, balance)
      const balanceAfterNanos = balance.creditedNanos - balance.chargedNanos
      return { kind: 'done', value: { ...credit, kind: 'top_up', balanceAfterNanos } }
    },
    looks: () => [],
  }
}

export function enforceMove(accountId: string): Move {
  return {
    words: `enforce the credit of ${accountId}`,
    async send(store) {
      const changes = { creditEnforced: true, force: true }
      const { kind } = await store.updateAccount(accountId, changes, SYSTEM, 0)
      return { kind }
    },
    play(world) {
      const balance = { ...accountOf(world, accountId), creditEnforced: true }
      world.accounts.set(accountId, balance)
      return { kind: 'done' }
    },
    looks: () => [],
  }
}

export function fileMove(file: BatchFile & { readonly models: readonly string[] }): Move {
  return {
    words: `keep ${file.fileId} of ${file.keyId} with ${file.models.join(', ')}`,
    send: (store) => store.storeBatchFile(file),
    play(world) {
      mustHave(world.keys.get(file.keyId))
      world.files.set(`${file.accountId} ${file.fileId}`, { keyId: file.keyId, models: file.models })
      return undefined
    },
    looks: () => [],
  }
}
