import type { Nanos } from '../kernel/money.ts'
import { type AuditedCall, type Difference, money, type RateAgain } from './audited.ts'
import { dayOf } from './calendar.ts'

const DAY_MS = 86_400_000n

/** The instants that a date can be made of. */
const INSTANT_MS_MAX = 8_640_000_000_000_000n

/** Checks a call against itself. Written without loops and lists: it runs for every call there ever was. */
export function createCallCheck(rateAgain: RateAgain): (call: AuditedCall) => Difference | null {
  let dayNumber = -1n
  let day = ''

  function checkDates(call: AuditedCall): Difference | null {
    if (call.startedAtMs < 0n || call.startedAtMs > INSTANT_MS_MAX)
      return differ('start of a call', call, String(call.startedAtMs), 'an instant')
    // Calls come in order of time, so the date is made once a day.
    const number = call.startedAtMs / DAY_MS
    if (number !== dayNumber) {
      dayNumber = number
      day = dayOf(Number(call.startedAtMs))
    }
    if (call.day !== day) return differ('day of a call', call, call.day, day)
    const month = day.slice(0, 7)
    return call.month === month ? null : differ('month of a call', call, call.month, month)
  }

  function checkSettled(call: AuditedCall): Difference | null {
    if (call.endedAtMs === null) return differ('end of a settled call', call, 'none', 'an instant')
    if (call.costNanos === null) return differ('cost of a settled call', call, 'none', 'an amount')
    if (call.listNanos === null) return differ('list cost of a settled call', call, 'none', 'an amount')
    if (call.balanceNanos === null) return differ('balance after a settled call', call, 'none', 'an amount')
    if (call.usage === null || call.priceVersionJson === null) return checkPrice(call, 0n, 0n)
    try {
      const rated = rateAgain({
        usage: call.usage,
        rating: call.rating,
        priceVersionJson: call.priceVersionJson,
      })
      return checkPrice(call, rated?.costNanos ?? 0n, rated?.listNanos ?? 0n)
    } catch (error) {
      return differ('price of a call', call, money(call.costNanos), `cannot be derived: ${String(error)}`)
    }
  }

  return (call) => {
    if (call.priceVersionJson === null)
      return differ('price version of a call', call, call.priceVersion, 'no such version is kept')
    const general = checkDates(call) ?? checkSigns(call)
    if (general !== null) return general
    switch (call.state) {
      case 'settled':
        return checkSettled(call) ?? checkOutcome(call, 0n)
      case 'released':
        if (call.balanceNanos === null)
          return differ('balance after a released call', call, 'none', 'an amount')
        return checkUncharged(call) ?? checkOutcome(call, 0n)
      case 'interrupted':
        return checkUncharged(call) ?? checkOutcome(call, call.holdListNanos)
      case 'in_flight':
        return checkOpen(call) ?? checkOutcome(call, 0n)
      default:
        return differ('state of a call', call, call.state, 'in_flight, settled, released or interrupted')
    }
  }
}

function checkPrice(call: AuditedCall, costNanos: Nanos, listNanos: Nanos): Difference | null {
  if (call.costNanos !== costNanos)
    return differ('cost of a call', call, money(call.costNanos), money(costNanos))
  if (call.listNanos !== listNanos)
    return differ('list cost of a call', call, money(call.listNanos), money(listNanos))
  return null
}

function checkUncharged(call: AuditedCall): Difference | null {
  if (call.endedAtMs === null)
    return differ(`end of a call that was ${call.state}`, call, 'none', 'an instant')
  return checkPrice(call, 0n, 0n)
}

function checkOpen(call: AuditedCall): Difference | null {
  const { costNanos, listNanos, balanceNanos, endedAtMs } = call
  if (endedAtMs !== null) return differ('end of a call in flight', call, String(endedAtMs), 'none')
  if (costNanos !== null) return differ('cost of a call in flight', call, money(costNanos), 'none')
  if (listNanos !== null) return differ('list cost of a call in flight', call, money(listNanos), 'none')
  if (balanceNanos !== null)
    return differ('balance after a call in flight', call, money(balanceNanos), 'none')
  return null
}

function checkOutcome(call: AuditedCall, lostNanos: Nanos): Difference | null {
  if (call.lostListNanos !== lostNanos)
    return differ('loss of a call', call, money(call.lostListNanos), money(lostNanos))
  const overrun = call.holdNanos < (call.costNanos ?? 0n) ? 1n : 0n
  if (call.overrun !== overrun)
    return differ('overrun flag of a call', call, String(call.overrun), String(overrun))
  return null
}

function checkSigns(call: AuditedCall): Difference | null {
  if (call.holdNanos < 0n) return negative('hold of a call', call, money(call.holdNanos))
  if (call.holdListNanos < 0n) return negative('list hold of a call', call, money(call.holdListNanos))
  if (call.inputTokens < 0n) return negative('input tokens of a call', call, call.inputTokens)
  if (call.outputTokens < 0n) return negative('output tokens of a call', call, call.outputTokens)
  if (call.cacheReadTokens < 0n) return negative('cache read tokens of a call', call, call.cacheReadTokens)
  if (call.cacheWriteTokens < 0n) return negative('cache write tokens of a call', call, call.cacheWriteTokens)
  return null
}

function negative(what: string, call: AuditedCall, stored: bigint | string): Difference {
  return differ(what, call, String(stored), 'not negative')
}

function differ(what: string, call: AuditedCall, stored: string, derived: string): Difference {
  return { what, where: `call ${call.id}`, stored, derived }
}
