import type { CallClosing, Settled } from '../../../src/ledger/call.ts'
import { accountOf, addToMonth, type CallModel, firstOf, monthKey, type World } from './simulation-world.ts'

export function settle(world: World, closing: CallClosing): Settled | 'rejected' {
  const call = world.calls.get(closing.requestId)
  if (call === undefined) return 'rejected'
  const isLost = closing.state === 'interrupted'
  if (call.state === 'settled' || call.state === 'released' || (call.state === 'interrupted' && isLost)) {
    const account = accountOf(world, call.accountId)
    return { balanceNanos: call.balanceNanos ?? account.creditedNanos - account.chargedNanos, applied: false }
  }
  const isOpen = call.state === 'in_flight'
  const { costNanos } = closing
  move(world, call, costNanos, isOpen)
  const lostNanos = isLost ? call.holdListNanos : 0n
  addToMonth(world, call, { lostNanos: lostNanos - call.lostNanos })
  const { creditedNanos, chargedNanos } = accountOf(world, call.accountId)
  const balanceNanos = creditedNanos - chargedNanos
  world.calls.set(call.id, {
    ...call,
    state: closing.state,
    endedAtMs: closing.atMs,
    costNanos,
    lostNanos,
    balanceNanos,
    overrun: costNanos > call.holdNanos,
  })
  if (isOpen && call.boundNanos > 0n && costNanos > call.holdNanos) raiseOverrun(world, call, costNanos)
  return { balanceNanos, applied: true }
}

function raiseOverrun(world: World, { keyId, month, boundNanos }: CallModel, costNanos: bigint): void {
  const key = monthKey(firstOf(world, keyId), month)
  const overrun = costNanos - boundNanos
  if (overrun > (world.overruns.get(key) ?? 0n)) world.overruns.set(key, overrun)
}

export function interrupt(world: World): number {
  const open = [...world.calls.values()].filter((call) => call.state === 'in_flight')
  for (const call of open) {
    move(world, call, 0n, true)
    addToMonth(world, call, { lostNanos: call.holdListNanos })
    const lostNanos = call.holdListNanos
    const endedAtMs = world.nowMs
    const { creditedNanos, chargedNanos } = accountOf(world, call.accountId)
    const ended = { endedAtMs, costNanos: 0n, lostNanos, balanceNanos: creditedNanos - chargedNanos }
    world.calls.set(call.id, { ...call, state: 'interrupted', ...ended })
  }
  return open.length
}

function move(world: World, call: CallModel, costNanos: bigint, isOpen: boolean): void {
  const gaveBackNanos = isOpen ? call.holdNanos : 0n
  const gaveAccountBackNanos = isOpen ? call.accountHoldNanos : 0n
  const account = accountOf(world, call.accountId)
  world.accounts.set(call.accountId, {
    ...account,
    chargedNanos: account.chargedNanos + costNanos,
    heldNanos: account.heldNanos - gaveAccountBackNanos,
  })
  addToMonth(world, call, { spentNanos: costNanos, heldNanos: -gaveBackNanos })
  world.events.push({ kind: 'applied', call, costNanos, gaveBackNanos, gaveAccountBackNanos })
}
