import type { Nanos } from '../kernel/money.ts'
import {
  type AuditedCredit,
  CREDIT_BACK,
  type CreditedCall,
  type Difference,
  money,
  type RateAgain,
  RERATE,
} from './audited.ts'

/** Checks the journal of credits entry by entry. Those about one call must follow each other, in order. */
export function createCreditCheck(rateAgain: RateAgain): (entry: AuditedCredit) => Difference | null {
  let callId: string | null = null
  /** What the entries of this call before the present one have given back. */
  let creditedNanos = 0n

  return (entry) => {
    if (entry.callId !== callId) {
      callId = entry.callId
      creditedNanos = 0n
    }
    const difference = check(entry, creditedNanos)
    creditedNanos += entry.amountNanos
    return difference
  }

  function check(entry: AuditedCredit, before: Nanos): Difference | null {
    if (entry.kind === 'top_up') {
      if (entry.callId !== null) return differ('call of a top-up', entry, entry.callId, 'none')
      return entry.amountNanos > 0n
        ? null
        : differ('amount of a top-up', entry, money(entry.amountNanos), 'above 0')
    }
    const { call } = entry
    if (call === null)
      return differ(`call of a ${entry.kind} entry`, entry, entry.callId ?? 'none', 'a call that is kept')
    if (call.accountId !== entry.accountId)
      return differ('account of a credit', entry, entry.accountId, call.accountId)
    if (call.state !== 'settled') return differ('state of a credited call', entry, call.state, 'settled')
    return entry.kind === 'rerate' ? checkRerate(entry, call, before) : checkCreditBack(entry, call, before)
  }

  /** After the entry, what was paid for the call in all is what it costs at the new prices. */
  function checkRerate(entry: AuditedCredit, call: CreditedCall, before: Nanos): Difference | null {
    if (entry.once === null || !entry.once.startsWith(RERATE))
      return differ('once of a rerate', entry, entry.once ?? 'none', `${RERATE}<price version>`)
    if (entry.priceVersionJson === null)
      return differ(
        'price version of a rerate',
        entry,
        entry.once.slice(RERATE.length),
        'no such version is kept',
      )
    const stored = money(entry.amountNanos)
    if (call.usage === null) return differ('amount of a rerate', entry, stored, 'none: the call has no usage')
    try {
      const { usage, rating } = call
      const rated = rateAgain({ usage, rating, priceVersionJson: entry.priceVersionJson })
      if (rated === null) return differ('amount of a rerate', entry, stored, 'none: the version has no price')
      const derived = (call.costNanos ?? 0n) - before - rated.costNanos
      return entry.amountNanos === derived
        ? null
        : differ('amount of a rerate', entry, stored, money(derived))
    } catch (error) {
      return differ('amount of a rerate', entry, stored, `cannot be derived: ${String(error)}`)
    }
  }
}

/** It gives back all that was paid for the call, and is the last entry about it. */
function checkCreditBack(entry: AuditedCredit, call: CreditedCall, before: Nanos): Difference | null {
  const stored = money(entry.amountNanos)
  if (entry.amountNanos <= 0n) return differ('amount of a credit-back', entry, stored, 'above 0')
  if (call.credited !== 1n)
    return differ('credited flag of a call', entry, String(call.credited), '1: it was credited back')
  if (entry.once !== CREDIT_BACK)
    return differ('once of a credit-back', entry, entry.once ?? 'none', CREDIT_BACK)
  const paid = (call.costNanos ?? 0n) - before
  return entry.amountNanos === paid
    ? null
    : differ('amount of a credit-back', entry, stored, `${money(paid)}: what was paid for the call`)
}

function differ(what: string, entry: AuditedCredit, stored: string, derived: string): Difference {
  const about = entry.callId === null ? '' : `, call ${entry.callId}`
  return { what, where: `credit ${entry.id}${about}`, stored, derived }
}
