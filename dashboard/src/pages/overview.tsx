import { useState } from 'preact/hooks'
import { type Bucket, type Overview, send } from '../api.ts'
import { type OwnAccount, useCommand, usePermissions, useResource } from '../data.ts'
import { addDays, count, dayOf, daysBetween, monthInWords, percent, plural, weekday } from '../format.ts'
import { Button } from '../parts/button.tsx'
import { CallTable, RefusedCalls } from '../parts/call-table.tsx'
import { BarChart } from '../parts/chart.tsx'
import { costPerDay } from '../parts/chart-series.ts'
import { Balance, Budget, Money, Stat, Sums } from '../parts/figures.tsx'
import { ClientSetup } from '../parts/secret-dialog.tsx'
import { CostComparison, TopSpend } from '../parts/spend-charts.tsx'
import { Failure, Heading, Loaded } from '../parts/states.tsx'
import { Link, navigate, withQuery } from '../router.tsx'
import { NeedsAttention, noticesOf } from './notices.tsx'

/** Shows the cost of the month, and findings that need attention. */
export function OverviewPage() {
  const today = dayOf(Date.now())
  // On a phone, a chart of a year would have bars that are less than a pixel wide.
  const isNarrow = innerWidth < 640
  const start = addDays(today, isNarrow ? -83 : -364)
  const month = `${today.slice(0, 8)}01`
  const overview = useResource('/gateway/v1/overview', {}, 3_000)
  const { value: account } = useResource('/gateway/v1/accounts/self', {}, 10_000)
  const year = useResource('/v1/usage', { start, end: today, group_by: 'day' }, 15_000)
  const latest = useResource('/gateway/v1/requests', { limit: 8 }, 3_000)
  if (latest.value?.data.length === 0) return <FirstRun />
  return (
    <>
      <Heading
        title="Overview"
        state={account !== null && <span class="name quiet">Account: {account.name}</span>}
      />
      <Loaded resource={overview} lines={3}>
        {(value) => (
          <>
            <Stats of={value} account={account} days={year.value?.data ?? null} today={today} month={month} />
            <div class="thirds">
              <NeedsAttention notices={noticesOf(value, account)} />
              <TopSpend by="key" />
              <TopSpend by="model" />
            </div>
          </>
        )}
      </Loaded>
      <Loaded resource={year} lines={5}>
        {({ data }) => (
          <BarChart
            title={isNarrow ? 'Cost per day, 12 weeks' : 'Cost per day, a year. Click a day or drag a range.'}
            {...costPerDay(start, today, data)}
            onPick={(day) => navigate(withQuery('/usage', { start: day, end: day }))}
            onBrush={(from, to) => navigate(withQuery('/usage', { start: from, end: to }))}
          />
        )}
      </Loaded>
      <h2>
        Latest calls <Link to="/requests?live=1">Follow live</Link>
      </h2>
      <Loaded resource={latest}>{({ data }) => <CallTable calls={data} />}</Loaded>
    </>
  )
}

interface StatsProps {
  readonly of: Overview
  readonly account: OwnAccount | null
  readonly days: readonly Bucket[] | null
  readonly today: string
  readonly month: string
}

function Stats({ of: value, account, days, today, month }: StatsProps) {
  const { balance } = value
  const isPrepaid = balance.enforced || balance.credited_usd !== 0
  return (
    <Sums>
      <Stat
        title={monthInWords(month)}
        value={<Money to={withQuery('/requests', { start: month, end: today })} usd={value.cost_usd} />}
        note={<CostComparison cost={value.cost_usd} start={month} end={today} />}
      />
      {account !== null && account.monthly_budget_usd !== null && (
        <Stat
          title="Left of the budget"
          value={<Money usd={account.monthly_budget_usd - account.month_spend_usd} />}
          note={<Budget of={account} />}
        />
      )}
      <Stat
        title="Forecast for the month"
        value={days === null ? '–' : <Money usd={value.cost_usd + restOfMonth(days, today)} />}
        note="based on the last 4 weeks"
      />
      <Stat
        title="Saved against list price"
        value={<Money to={withQuery('/usage', { start: month, end: today })} usd={value.savings_usd} />}
        note={`${percent(value.savings_usd, value.list_cost_usd)} of the list price`}
      />
      <Stat
        title="Credit left"
        value={isPrepaid ? <Balance to="/credits" usd={balance.balance_usd} /> : '–'}
        note={
          balance.enforced ? (
            <>
              <Money usd={balance.held_usd} /> reserved
            </>
          ) : isPrepaid ? (
            'not enforced'
          ) : (
            'not prepaid'
          )
        }
      />
      <Stat
        title="In flight"
        value={<Link to="/requests?state=in_flight">{count(value.calls_in_flight)}</Link>}
        note={
          value.calls_waiting > 0 ? (
            <Link to="/requests?state=waiting">{plural(value.calls_waiting, 'call')} waiting</Link>
          ) : (
            `${plural(value.requests, 'call')} this month`
          )
        }
      />
    </Sums>
  )
}

/** Forecasts each remaining day as the mean of the same weekday in the last four weeks. */
function restOfMonth(days: readonly Bucket[], today: string): number {
  const costs = new Map(days.map(({ day = '', cost_usd }) => [day, cost_usd]))
  const weeks = daysBetween(addDays(today, -28), addDays(today, -1))
  const first = days[0]?.day ?? today
  const meanOf = (name: string) => {
    const same = weeks.filter((day) => day >= first && weekday(day) === name)
    return same.length === 0 ? 0 : same.reduce((sum, day) => sum + (costs.get(day) ?? 0), 0) / same.length
  }
  const next = new Date(today)
  const end = dayOf(Date.UTC(next.getUTCFullYear(), next.getUTCMonth() + 1, 0))
  const left = end > today ? daysBetween(addDays(today, 1), end) : []
  const restOfToday = Math.max(0, meanOf(weekday(today)) - (costs.get(today) ?? 0))
  return left.reduce((sum, day) => sum + meanOf(weekday(day)), restOfToday)
}

/** Shown before the first call: how to make it. The first call replaces this page by the overview. */
function FirstRun() {
  const [key, setKey] = useState<string | null>(null)
  const command = useCommand()
  const { mayManage } = usePermissions()
  const create = async () =>
    setKey((await send('POST /v1/keys', {}, { name: 'first', monthly_budget_usd: 10 })).key ?? null)
  return (
    <>
      <Heading title="The first call" />
      <p class="lead">A client changes two things: the base URL and the key.</p>
      {key === null && mayManage && (
        <p>
          <Button
            title="Create a key with a budget of $10"
            kind="primary"
            isDisabled={command.isBusy}
            onClick={() => void command.run(create)}
          />
        </p>
      )}
      {key !== null && <p class="quiet">The lines below contain the key. It is shown only once.</p>}
      {command.error !== null && <Failure error={command.error} />}
      <ClientSetup secret={key ?? 'svc_live_…'} />
      <p role="status" class="quiet">
        Waiting for the first call…
      </p>
      <RefusedCalls />
    </>
  )
}
