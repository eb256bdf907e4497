import type { Nanos } from '../kernel/money.ts'
import {
  type AccountSums,
  type AuditCounts,
  type AuditedCall,
  type AuditedCredit,
  type Batches,
  type BooksReader,
  CREDIT_BACK,
  type CreditedCall,
  DAY_SUMS,
  type Difference,
  FLOOR_FIGURES,
  MONTH_SUMS,
  money,
  type RateAgain,
  RERATE,
  type SumsRow,
} from './audited.ts'
import { dayOf } from './calendar.ts'

export interface AuditReport {
  readonly counts: AuditCounts
  readonly monthsAway: readonly string[]
  readonly difference: Difference | null
}

/**
 * The audit derives every sum and price that is kept from the records it was made of, and reports the first difference:
 * single calls and credits are checked before the sums over them, so that the report names the cause and not its
 * consequence.
 */
export async function runAudit(
  books: BooksReader,
  rateAgain: RateAgain,
  onProgress: (done: number, total: number) => void,
): Promise<AuditReport> {
  const counts = await books.counts()
  // Every call is read twice: alone, and as part of the sums.
  const total = counts.calls * 2
  let done = 0
  const advance = (count: number): void => {
    done += count
    onProgress(Math.min(done, total), total)
  }
  const difference =
    (await firstOf(books.calls(), createCallCheck(rateAgain), advance)) ??
    (await firstOf(books.credits(), createCreditCheck(rateAgain))) ??
    (await checkSums(books, advance))
  return { counts, monthsAway: books.monthsAway, difference }
}

async function checkSums(books: BooksReader, advance: (count: number) => void): Promise<Difference | null> {
  await books.addUp(advance)
  return (
    (await firstOf(books.months(), sumsCheck('of a key month', MONTH_SUMS))) ??
    (await firstOf(books.days(), sumsCheck('of a rollup', DAY_SUMS))) ??
    (await firstOf(books.accounts(), checkAccount)) ??
    (await firstOf(books.floors(), sumsCheck('of a hold floor', FLOOR_FIGURES)))
  )
}

async function firstOf<T>(
  batches: Batches<T>,
  check: (item: T) => Difference | null,
  advance: (count: number) => void = () => {},
): Promise<Difference | null> {
  for await (const batch of batches) {
    for (const item of batch) {
      const difference = check(item)
      if (difference !== null) return difference
    }
    advance(batch.length)
  }
  return null
}

/** The instants that a date can be made of. */
const INSTANT_MS_MAX = 8_640_000_000_000_000n

/** Checks a call against itself. Written without loops and lists: it runs for every call there ever was. */
function createCallCheck(rateAgain: RateAgain): (call: AuditedCall) => Difference | null {
  return (call) => {
    if (call.priceVersionJson === null)
      return differInCall('price version of a call', call, call.priceVersion, 'no such version is kept')
    return checkDates(call) ?? checkSigns(call) ?? checkState(call, call.priceVersionJson, rateAgain)
  }
}

function checkDates(call: AuditedCall): Difference | null {
  if (call.startedAtMs < 0n || call.startedAtMs > INSTANT_MS_MAX)
    return differInCall('start of a call', call, String(call.startedAtMs), 'an instant')
  const day = dayOf(Number(call.startedAtMs))
  if (call.day !== day) return differInCall('day of a call', call, call.day, day)
  const month = day.slice(0, 7)
  return call.month === month ? null : differInCall('month of a call', call, call.month, month)
}

function checkSigns(call: AuditedCall): Difference | null {
  return (
    checkSign('hold of a call', call, call.holdNanos, money) ??
    checkSign('list hold of a call', call, call.holdListNanos, money) ??
    checkSign('input tokens of a call', call, call.inputTokens) ??
    checkSign('output tokens of a call', call, call.outputTokens) ??
    checkSign('cache read tokens of a call', call, call.cacheReadTokens) ??
    checkSign('cache write tokens of a call', call, call.cacheWriteTokens)
  )
}

function checkState(call: AuditedCall, priceVersionJson: string, rateAgain: RateAgain): Difference | null {
  switch (call.state) {
    case 'settled':
      return checkSettled(call, priceVersionJson, rateAgain) ?? checkOutcome(call, 0n)
    case 'released':
      if (call.balanceNanos === null) return lacks('balance after a released call', call, 'an amount')
      return checkUncharged(call) ?? checkOutcome(call, 0n)
    case 'interrupted':
      return checkUncharged(call) ?? checkOutcome(call, call.holdListNanos)
    case 'in_flight':
      return checkOpen(call) ?? checkOutcome(call, 0n)
    default:
      return differInCall('state of a call', call, call.state, 'in_flight, settled, released or interrupted')
  }
}

function checkSettled(call: AuditedCall, priceVersionJson: string, rateAgain: RateAgain): Difference | null {
  const { usage, rating } = call
  if (call.endedAtMs === null) return lacks('end of a settled call', call, 'an instant')
  if (call.costNanos === null) return lacks('cost of a settled call', call, 'an amount')
  if (call.listNanos === null) return lacks('list cost of a settled call', call, 'an amount')
  if (call.balanceNanos === null) return lacks('balance after a settled call', call, 'an amount')
  if (usage === null) return checkPrice(call, 0n, 0n)
  try {
    const rated = rateAgain({ usage, rating, priceVersionJson })
    return checkPrice(call, rated?.costNanos ?? 0n, rated?.listNanos ?? 0n)
  } catch (error) {
    return differInCall('price of a call', call, money(call.costNanos), `cannot be derived: ${String(error)}`)
  }
}

function checkUncharged(call: AuditedCall): Difference | null {
  if (call.endedAtMs === null) return lacks(`end of a call that was ${call.state}`, call, 'an instant')
  return checkPrice(call, 0n, 0n)
}

function checkPrice(call: AuditedCall, costNanos: Nanos, listNanos: Nanos): Difference | null {
  return (
    checkAmount('cost of a call', call, call.costNanos, costNanos) ??
    checkAmount('list cost of a call', call, call.listNanos, listNanos)
  )
}

function checkOpen(call: AuditedCall): Difference | null {
  if (call.endedAtMs !== null)
    return differInCall('end of a call in flight', call, String(call.endedAtMs), 'none')
  return (
    checkAmount('cost of a call in flight', call, call.costNanos, null) ??
    checkAmount('list cost of a call in flight', call, call.listNanos, null) ??
    checkAmount('balance after a call in flight', call, call.balanceNanos, null)
  )
}

function checkOutcome(call: AuditedCall, lostNanos: Nanos): Difference | null {
  const overrun = call.holdNanos < (call.costNanos ?? 0n) ? 1n : 0n
  const lost = checkAmount('loss of a call', call, call.lostListNanos, lostNanos)
  if (lost !== null || call.overrun === overrun) return lost
  return differInCall('overrun flag of a call', call, String(call.overrun), String(overrun))
}

function checkAmount(
  what: string,
  call: AuditedCall,
  stored: Nanos | null,
  derived: Nanos | null,
): Difference | null {
  return stored === derived ? null : differInCall(what, call, money(stored), money(derived))
}

function checkSign(
  what: string,
  call: AuditedCall,
  stored: bigint,
  show: (stored: bigint) => string = String,
): Difference | null {
  return stored < 0n ? differInCall(what, call, show(stored), 'not negative') : null
}

function lacks(what: string, call: AuditedCall, derived: string): Difference {
  return differInCall(what, call, 'none', derived)
}

function differInCall(what: string, call: AuditedCall, stored: string, derived: string): Difference {
  return { what, where: `call ${call.id}`, stored, derived }
}

/** Checks the journal of credits entry by entry. The entries about one call must follow each other, in order. */
function createCreditCheck(rateAgain: RateAgain): (entry: AuditedCredit) => Difference | null {
  let callId: string | null = null
  /** The sum that earlier entries about this call have given back. */
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
      if (entry.callId !== null) return differInCredit('call of a top-up', entry, entry.callId, 'none')
      return entry.amountNanos > 0n
        ? null
        : differInCredit('amount of a top-up', entry, money(entry.amountNanos), 'above 0')
    }
    const { call } = entry
    if (call === null)
      return differInCredit(
        `call of a ${entry.kind} entry`,
        entry,
        entry.callId ?? 'none',
        'a call that is kept',
      )
    if (call.accountId !== entry.accountId)
      return differInCredit('account of a credit', entry, entry.accountId, call.accountId)
    if (call.state !== 'settled')
      return differInCredit('state of a credited call', entry, call.state, 'settled')
    return entry.kind === 'rerate' ? checkRerate(entry, call, before) : checkCreditBack(entry, call, before)
  }

  /** After a rerate, the sum paid for the call is the call's cost at the new prices. */
  function checkRerate(entry: AuditedCredit, call: CreditedCall, before: Nanos): Difference | null {
    if (entry.once === null || !entry.once.startsWith(RERATE))
      return differInCredit('once of a rerate', entry, entry.once ?? 'none', `${RERATE}<price version>`)
    if (entry.priceVersionJson === null)
      return differInCredit(
        'price version of a rerate',
        entry,
        entry.once.slice(RERATE.length),
        'no such version is kept',
      )
    const stored = money(entry.amountNanos)
    if (call.usage === null)
      return differInCredit('amount of a rerate', entry, stored, 'none: the call has no usage')
    try {
      const { usage, rating } = call
      const rated = rateAgain({ usage, rating, priceVersionJson: entry.priceVersionJson })
      if (rated === null)
        return differInCredit('amount of a rerate', entry, stored, 'none: the version has no price')
      const derived = (call.costNanos ?? 0n) - before - rated.costNanos
      return entry.amountNanos === derived
        ? null
        : differInCredit('amount of a rerate', entry, stored, money(derived))
    } catch (error) {
      return differInCredit('amount of a rerate', entry, stored, `cannot be derived: ${String(error)}`)
    }
  }
}

/** A credit-back returns all that was paid for the call, and is the last entry about the call. */
function checkCreditBack(entry: AuditedCredit, call: CreditedCall, before: Nanos): Difference | null {
  const stored = money(entry.amountNanos)
  if (entry.amountNanos <= 0n) return differInCredit('amount of a credit-back', entry, stored, 'above 0')
  if (call.credited !== 1n)
    return differInCredit('credited flag of a call', entry, String(call.credited), '1: it was credited back')
  if (entry.once !== CREDIT_BACK)
    return differInCredit('once of a credit-back', entry, entry.once ?? 'none', CREDIT_BACK)
  const paid = (call.costNanos ?? 0n) - before
  return entry.amountNanos === paid
    ? null
    : differInCredit('amount of a credit-back', entry, stored, `${money(paid)}: what was paid for the call`)
}

function differInCredit(what: string, entry: AuditedCredit, stored: string, derived: string): Difference {
  const about = entry.callId === null ? '' : `, call ${entry.callId}`
  return { what, where: `credit ${entry.id}${about}`, stored, derived }
}

/** Compares the sums of a row, which is `ofWhat`, with the sums of its calls and credits. */
function sumsCheck(ofWhat: string, columns: readonly string[]): (row: SumsRow) => Difference | null {
  return (row) => checkRow(ofWhat, columns, row)
}

function checkRow(ofWhat: string, columns: readonly string[], row: SumsRow): Difference | null {
  const { where, stored, derived } = row
  if (stored !== null && derived === null)
    return { what: `row ${ofWhat}`, where, stored: 'a row', derived: 'none: it has no calls' }
  for (const column of columns) {
    const kept = stored?.[column] ?? 0n
    const due = derived?.[column] ?? 0n
    if (kept === due) continue
    const isMoney = column.endsWith('_nanos')
    const show = (value: bigint): string => (isMoney ? money(value) : String(value))
    const name = column.replace(/_nanos$/, '').replaceAll('_', ' ')
    return {
      what: `${name} ${ofWhat}`,
      where,
      stored: stored === null ? 'no row' : show(kept),
      derived: show(due),
    }
  }
  return null
}

function checkAccount(account: AccountSums): Difference | null {
  const { stored, derived } = account
  const differ = (what: string, kept: string, due: string): Difference => ({
    what,
    where: `account ${account.id}`,
    stored: kept,
    derived: due,
  })
  if (account.foreignKey !== null)
    return differ('account of the calls of a key', account.id, `that of ${account.foreignKey}`)
  if (stored.creditedNanos !== derived.creditedNanos)
    return differ('credited of an account', money(stored.creditedNanos), money(derived.creditedNanos))
  if (stored.chargedNanos !== derived.chargedNanos)
    return differ('charged of an account', money(stored.chargedNanos), money(derived.chargedNanos))
  if (stored.heldNanos !== derived.heldNanos)
    return differ('held of an account', money(stored.heldNanos), money(derived.heldNanos))
  if (account.callsMarkedCredited !== account.callsCreditedBack)
    return differ('calls credited back', `${account.callsMarkedCredited}`, `${account.callsCreditedBack}`)
  // Credit is enforced from the first top-up on, and by nothing else.
  if (account.topUps > 0n && stored.enforced !== 1n)
    return differ('enforced credit of an account', 'no', 'yes: it was topped up')
  if (account.topUps === 0n && stored.enforced !== 0n)
    return differ('enforced credit of an account', 'yes', 'no: it was never topped up')
  return null
}
