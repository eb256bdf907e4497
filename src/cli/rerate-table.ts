import { formatUsd } from '../kernel/money.ts'
import type { Booked, RerateLine, RerateSummary } from '../ledger/rerate.ts'
import { printable } from './printable.ts'

const HEAD = ['model', 'calls', 'old list', 'new list', 'old cost', 'new cost', 'difference']

/** What would change, as lines of text. Amounts are USD. */
export function describeSummary(summary: RerateSummary, { charge }: { readonly charge: boolean }): string {
  const lines = summary.total.calls === 0 ? ['No call costs anything else.'] : table(summary)
  const { creditCalls, creditNanos, chargeCalls, chargeNanos, kept } = summary
  if (creditCalls > 0) lines.push(`To credit: ${formatUsd(creditNanos)} USD for ${calls(creditCalls)}.`)
  if (chargeCalls > 0) {
    const amount = `${formatUsd(chargeNanos)} USD for ${calls(chargeCalls)}`
    lines.push(charge ? `To charge: ${amount}.` : `Not charged: ${amount} that cost more. --charge books it.`)
  }
  if (kept.same_price > 0) lines.push(`Unchanged: ${calls(kept.same_price)}.`)
  if (kept.no_usage > 0) lines.push(`Left as they are, without usage: ${calls(kept.no_usage)}.`)
  if (kept.no_price > 0) lines.push(`Left as they are, still without a price: ${calls(kept.no_price)}.`)
  if (kept.credited_back > 0)
    lines.push(`Left as they are, credited back before: ${calls(kept.credited_back)}.`)
  if (kept.rerated_before > 0)
    lines.push(`Left as they are, priced with this version once before: ${calls(kept.rerated_before)}.`)
  if (kept.unreadable > 0)
    lines.push(`Left as they are, not readable: ${calls(kept.unreadable)}. tollgate audit names the first.`)
  return `${lines.join('\n')}\n`
}

export function describeBooked({ calls: count, nanos }: Booked): string {
  if (count === 0) return 'Nothing was booked: all of it had been booked before.\n'
  const net = nanos < 0n ? `${formatUsd(-nanos)} USD charged` : `${formatUsd(nanos)} USD credited`
  return `Booked ${calls(count)}: ${net} in all.\n`
}

function calls(count: number): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? 'call' : 'calls'}`
}

function table(summary: RerateSummary): string[] {
  const byName = [...summary.models].sort(([a], [b]) => (a < b ? -1 : 1))
  const rows = [HEAD, ...byName.map(([model, line]) => cells(model, line)), cells('total', summary.total)]
  const widths = HEAD.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row) =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  '),
  )
}

function cells(model: string, line: RerateLine): string[] {
  return [
    printable(model),
    line.calls.toLocaleString('en-US'),
    formatUsd(line.oldListNanos),
    formatUsd(line.newListNanos),
    formatUsd(line.oldCostNanos),
    formatUsd(line.newCostNanos),
    formatUsd(line.newCostNanos - line.oldCostNanos),
  ]
}
