import type { Nanos } from '../kernel/money.ts'
import { type Difference, money } from './audited.ts'

/** The columns that are sums over calls and credits, by the names they have in the store. */
export const MONTH_SUMS = ['spent_nanos', 'held_nanos', 'lost_nanos'] as const
export const DAY_SUMS = [
  'requests',
  'input_tokens',
  'output_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'cost_nanos',
  'list_nanos',
  'credited_nanos',
  'unpriced_requests',
  'estimated_requests',
] as const

/** Not sums: the largest of their calls, and whether the month says that there is something to look up. */
export const FLOOR_FIGURES = ['cost_nanos', 'list_nanos', 'mark'] as const

/** A row of sums as it is kept and as it should be. Null: there is none, or there should be none. */
export interface SumsRow {
  readonly where: string
  readonly stored: Readonly<Record<string, bigint>> | null
  readonly derived: Readonly<Record<string, bigint>> | null
}

export interface AccountSums {
  readonly id: string
  readonly stored: AccountFigures & { readonly enforced: bigint }
  readonly derived: AccountFigures
  readonly topUps: bigint
  /** Of calls: those marked as credited back, and those of which the journal says so. */
  readonly callsMarkedCredited: bigint
  readonly callsCreditedBack: bigint
  /** A key of another account, or of none, that calls of this account name. */
  readonly foreignKey: string | null
}

export interface AccountFigures {
  readonly creditedNanos: Nanos
  readonly chargedNanos: Nanos
  readonly heldNanos: Nanos
}

export function checkMonth(row: SumsRow): Difference | null {
  return checkSums('of a key month', MONTH_SUMS, row)
}

export function checkDay(row: SumsRow): Difference | null {
  return checkSums('of a rollup', DAY_SUMS, row)
}

export function checkFloor(row: SumsRow): Difference | null {
  return checkSums('of a hold floor', FLOOR_FIGURES, row)
}

function checkSums(ofWhat: string, columns: readonly string[], row: SumsRow): Difference | null {
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

export function checkAccount(account: AccountSums): Difference | null {
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
  // Credit counts from the first top-up on, and from nothing else.
  if (account.topUps > 0n && stored.enforced !== 1n)
    return differ('enforced credit of an account', 'no', 'yes: it was topped up')
  if (account.topUps === 0n && stored.enforced !== 0n)
    return differ('enforced credit of an account', 'yes', 'no: it was never topped up')
  return null
}
