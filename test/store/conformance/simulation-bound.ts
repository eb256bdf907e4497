import assert from 'node:assert/strict'
import { accountOf, firstOf, type MoneyEvent, monthKey, type World } from './simulation-world.ts'

/** The last call that was admitted under a limit. */
interface LastAdmitted {
  readonly callId: string
  readonly limitNanos: bigint
  /** The call's own part of the used amount: its hold while it is open, then its cost. */
  partNanos: bigint
  /** The costs of other calls since then, where they exceeded the holds that they freed. */
  excessNanos: bigint
}

/**
 * The promise of `exact` budgets, for each budget's month and for each account's credit. `used` is the spend plus the
 * holds; a call is admitted only while `used < limit`. Afterwards a booking replaces a hold by a cost that is not
 * larger, so `used` can only shrink until the next call is admitted. Therefore at any time, for the last call
 * that was admitted and the limit that it was admitted under:
 *
 *     used - (that call's own part) < limit        and so        spent < limit + (that one call's cost)
 *
 * to the nanodollar, however the limit was edited since. Two events break the step in the middle, each by an amount
 * that is known: a call that costs more than it held, and a late settlement of a call whose hold a crash had given
 * back. The sum of these amounts since that admission is the excess; the right side grows by the excess only.
 */
export class OneCallBound {
  readonly #last = new Map<string, LastAdmitted>()
  readonly #excessAllowed: boolean

  constructor(excessAllowed: boolean) {
    this.#excessAllowed = excessAllowed
  }

  note(event: MoneyEvent, world: World): void {
    const month = monthKey(firstOf(world, event.call.keyId), event.call.month)
    const credit = event.call.accountId
    if (event.kind === 'admitted') {
      this.#admitted(month, event.capNanos, event.call.id, event.call.holdNanos)
      this.#admitted(credit, event.creditNanos, event.call.id, event.call.accountHoldNanos)
    } else {
      this.#applied(month, event.call.id, event.costNanos - event.gaveBackNanos)
      this.#applied(credit, event.call.id, event.costNanos - event.gaveAccountBackNanos)
    }
  }

  /** Checks the bound in this world, whose figures have just been compared with the store's. */
  check(world: World): void {
    for (const [key, { spentNanos, heldNanos }] of world.months)
      this.#check(key, spentNanos + heldNanos, this.#excessAllowed)
    for (const accountId of world.accounts.keys()) {
      const { chargedNanos, heldNanos } = accountOf(world, accountId)
      // A hold counts against the account no further than the key's own cap, which the call may pass.
      this.#check(accountId, chargedNanos + heldNanos, true)
    }
  }

  #admitted(limit: string, limitNanos: bigint | null, callId: string, partNanos: bigint): void {
    if (limitNanos === null) this.#last.delete(limit)
    else this.#last.set(limit, { callId, limitNanos, partNanos, excessNanos: 0n })
  }

  #applied(limit: string, callId: string, growthNanos: bigint): void {
    const last = this.#last.get(limit)
    if (last === undefined) return
    if (last.callId === callId) last.partNanos += growthNanos
    else if (growthNanos > 0n) last.excessNanos += growthNanos
  }

  #check(limit: string, usedNanos: bigint, excessAllowed: boolean): void {
    const last = this.#last.get(limit)
    if (last === undefined) return
    const { callId, limitNanos, partNanos, excessNanos } = last
    const described = `${limit}: ${usedNanos} used, of it ${partNanos} by ${callId}, the last to be admitted under ${limitNanos}`
    assert.ok(usedNanos - partNanos < limitNanos + excessNanos, `${described}, and ${excessNanos} in excess`)
    assert.ok(excessAllowed || excessNanos === 0n, `${described}: nothing may exceed its hold here`)
  }
}
