import type { Bill } from '../api.ts'
import { usePermissions } from '../data.ts'
import { count, exactMoney, fractionInPercent, money } from '../format.ts'
import { Table } from '../parts/table.tsx'
import { Link } from '../router.tsx'

export function BillTable({ bill }: { readonly bill: Bill }) {
  const { isDeveloper } = usePermissions()
  const { lines, discount_usd: discount, rounding_usd: rounding } = bill
  if (lines.length === 0)
    return (
      <p class="quiet">
        {bill.note}{' '}
        {bill.held_usd > 0 && bill.cost_usd === null && (
          <>
            <b>{money(bill.held_usd)}</b> is reserved. {bill.held_because}
          </>
        )}
      </p>
    )
  const models = [...new Set(lines.map(({ model }) => model))]
  const fractions = [...new Set(lines.map((line) => line.discount))]
  const sum = (id: string, usd: number): BillRow => ({ id, title: id, usd })
  const rows: readonly BillRow[] = [
    ...lines.map((line) => ({
      id: `${line.model} ${line.label}`,
      title: line.label,
      details: [...(models.length > 1 ? [line.model] : []), ...line.modifiers].join(', '),
      quantity: count(line.quantity),
      rate: `× ${exactMoney(line.rate_usd)} ${RATE_UNITS[line.rate_per] ?? `per ${count(line.rate_per)}`}`,
      usd: line.amount_usd,
    })),
    ...(rounding === 0 ? [] : [sum('rounding, once', rounding)]),
    ...(discount === null || discount === 0
      ? []
      : [
          sum('at list price', bill.list_cost_usd ?? 0),
          sum(`discount of ${fractions.map(fractionInPercent).join(' and ')}`, -discount),
        ]),
  ]
  // The same number of decimals in all rows aligns the decimal points.
  const decimals = Math.max(...[bill.cost_usd ?? 0, ...rows.map(({ usd }) => usd)].map(lineDecimals))
  return (
    <>
      <h2>Bill</h2>
      <Table
        caption="Bill"
        kind="bill"
        rows={rows}
        rowClass={({ rate }) => (rate === undefined ? undefined : 'line')}
        columns={[
          {
            title: 'Used',
            cell: ({ title, details }) => (
              <>
                {title} <span class="quiet">{details}</span>
              </>
            ),
          },
          { title: 'Quantity', isFigure: true, cell: ({ quantity }) => quantity },
          { title: 'Rate', isFigure: true, cell: ({ rate }) => <span class="quiet">{rate}</span> },
          { title: 'Amount', isFigure: true, cell: ({ usd }) => money(usd, decimals) },
        ]}
        total={['Total', sum('Total', bill.cost_usd ?? 0)]}
      />
      <p class="quiet">
        Prices of {isDeveloper ? bill.price_version : <Link to="/prices">{bill.price_version}</Link>}
        {models.length === 1 && ` for ${models[0]}`}.{' '}
        {bill.held_usd > 0 && `We reserved ${money(bill.held_usd)} while it ran. ${bill.held_because}`}
      </p>
    </>
  )
}

interface BillRow {
  readonly id: string
  readonly title: string
  readonly details?: string
  readonly quantity?: string
  readonly rate?: string
  readonly usd: number
}

const RATE_UNITS: Readonly<Record<number, string>> = { 1: 'each', 1000000: 'per M' }

/** The decimals of an amount, at least two. A line is not rounded, so it may have more decimals than the total. */
function lineDecimals(usd: number): number {
  const text = Math.abs(usd).toFixed(15).replace(/0+$/, '')
  return Math.max(2, text.length - text.indexOf('.') - 1)
}
