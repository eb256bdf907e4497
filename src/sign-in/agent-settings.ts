import { createHash } from 'node:crypto'
import type { ManagedSettings } from '../config/read-sign-in.ts'
import type { RawHeaders } from '../http/raw-headers.ts'
import { valuesOf } from '../http/raw-headers.ts'
import type { Nanos } from '../kernel/money.ts'
import type { PersonRecord } from '../keys/person-store.ts'
import { nextDayMs, nextMonthMs } from '../ledger/calendar.ts'

/** What Claude Code reads besides its calls, in its own formats: managed settings, and what is left of a budget. */

export interface ServedSettings {
  readonly etag: string
  readonly json: object
}

export function serveSettings(settings: ManagedSettings): ServedSettings {
  const checksum = `sha256:${createHash('sha256').update(canonical(settings)).digest('hex')}`
  return { etag: `"${checksum}"`, json: { uuid: checksum, checksum, settings } }
}

/** JSON without blanks, and with the members of every object in order, as the client digests it too. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )
}

export function hasSettings(headers: RawHeaders, { etag }: ServedSettings): boolean {
  const known = valuesOf(headers, 'if-none-match').flatMap((line) => line.split(','))
  return known.some((tag) => tag.trim().replace(/^W\//, '') === etag)
}

interface Ceiling {
  readonly group: 'monthly' | 'daily'
  readonly capNanos: Nanos | null
  readonly spentNanos: Nanos
  readonly resetsAtMs: number
}

/** The ceiling of the person with the least money left, in cents. */
export function spendOf(
  { month, monthlyBudgetNanos, dailyBudgetNanos }: PersonRecord,
  nowMs: number,
): object {
  const monthly: Ceiling = {
    group: 'monthly',
    capNanos: monthlyBudgetNanos,
    spentNanos: month.spentNanos,
    resetsAtMs: nextMonthMs(nowMs),
  }
  const daily: Ceiling = {
    group: 'daily',
    capNanos: dailyBudgetNanos,
    spentNanos: month.daySpentNanos,
    resetsAtMs: nextDayMs(nowMs),
  }
  const isDayTighter = leftOf(daily) < leftOf(monthly)
  const tightest = isDayTighter ? daily : monthly
  const { group, capNanos, spentNanos, resetsAtMs } = tightest
  const percent = capNanos === null ? null : percentOf(spentNanos, capNanos)
  const limit = {
    kind: 'spend',
    group,
    percent,
    resets_at: new Date(resetsAtMs).toISOString(),
    severity: severityOf(percent ?? 0),
    is_active: true,
  }
  return {
    extra_usage: {
      is_enabled: true,
      monthly_limit: capNanos === null ? null : centsOf(capNanos),
      used_credits: centsOf(spentNanos),
      utilization: percent,
      currency: 'USD',
    },
    limits: capNanos === null ? [] : [limit],
  }
}

const leftOf = ({ capNanos, spentNanos }: Ceiling): number =>
  capNanos === null ? Infinity : Number(capNanos - spentNanos)

const centsOf = (nanos: Nanos): number => Math.round(Number(nanos) / 10_000_000)

/** A budget of nothing is spent. */
const percentOf = (spent: Nanos, cap: Nanos): number => (cap === 0n ? 100 : Number((spent * 100n) / cap))

function severityOf(percent: number): 'normal' | 'warning' | 'critical' {
  if (percent >= 100) return 'critical'
  return percent >= 80 ? 'warning' : 'normal'
}
