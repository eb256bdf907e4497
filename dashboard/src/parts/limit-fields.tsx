import type { Person } from '../api.ts'
import { amountText, readAmount, readCount } from '../forms/readings.ts'
import type { Bound } from '../forms/use-form.ts'
import { AmountField, SelectField, TextField } from './fields.tsx'

type Limits = Pick<Person, 'monthly_budget_usd' | 'daily_budget_usd' | 'requests_per_minute'>
type LimitTexts = Readonly<Record<keyof Limits, string>>

/** The limits of a key, of a person, and of new people. */
export const limitFieldsOf = (of: Limits | null): LimitTexts => ({
  monthly_budget_usd: amountText(of?.monthly_budget_usd),
  daily_budget_usd: amountText(of?.daily_budget_usd),
  requests_per_minute: of?.requests_per_minute?.toString() ?? '',
})

export const readLimits = (fields: LimitTexts) => ({
  monthly_budget_usd: readAmount(fields.monthly_budget_usd),
  daily_budget_usd: readAmount(fields.daily_budget_usd),
  requests_per_minute: readCount(fields.requests_per_minute),
})

export const LimitFields = ({ bind }: { bind(name: keyof Limits): Bound<string> }) => (
  <>
    <AmountField
      label="Budget per month, USD"
      hint="A hard limit per calendar month, UTC. Optional."
      {...bind('monthly_budget_usd')}
    />
    <AmountField
      label="Budget per day, USD"
      hint="A hard limit per day, UTC. Optional."
      {...bind('daily_budget_usd')}
    />
    <TextField
      label="Requests per minute"
      hint="Across all nodes. Leave empty for no limit."
      {...bind('requests_per_minute')}
    />
  </>
)

export const ModeField = (props: Bound<string>) => (
  <SelectField
    label="Budget mode"
    hint="Exact: calls wait while other calls have reserved the rest of the budget. Settled: calls never wait, but together they may exceed the budget."
    options={{ '': 'gateway default', exact: 'exact', settled: 'settled' }}
    {...props}
  />
)
