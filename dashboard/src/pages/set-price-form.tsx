import { useState } from 'preact/hooks'
import { formatUsd } from '../../../src/kernel/money.ts'
import { type PricedModel, send } from '../api.ts'
import { capitalize } from '../format.ts'
import { nanosOf, readInstant } from '../forms/readings.ts'
import { type FormCallbacks, FormDialog } from '../parts/dialog.tsx'
import { AmountField, InstantField } from '../parts/fields.tsx'

type Texts = Readonly<Record<string, string>>

/** The single rates of the standard tier. Rates for long prompts and of other tiers are in groups of their own. */
function ratesOf(model: PricedModel | undefined): Texts {
  const standard = model?.prices.rates?.['standard'] ?? {}
  const single = Object.entries(standard).filter(([, rate]) => typeof rate === 'string')
  return Object.fromEntries(single.map(([unit, rate]) => [unit, String(rate)]))
}

interface SetPriceProps extends FormCallbacks<unknown> {
  readonly model: string
  readonly provider: string
  /** The model whose entry the price starts from. */
  readonly like: PricedModel | undefined
}

/** Sets the price of a model, starting from the entry of a similar one. */
export function SetPriceForm({ model, provider, like, ...callbacks }: SetPriceProps) {
  const [rates, setRates] = useState<Texts>(() => ({ input: '', output: '', ...ratesOf(like) }))
  const [from, setFrom] = useState('')
  const start = readInstant(from)
  const wrong = Object.keys(rates).filter((unit) => nanosOf(rates[unit] ?? '') === null)
  const typed = Object.fromEntries(
    Object.entries(rates).map(([unit, text]) => [unit, formatUsd(nanosOf(text) ?? 0n)]),
  )
  const { rates: tiers = {} } = like?.prices ?? {}
  const entry = like && {
    ...like.prices,
    provider: like.provider,
    mode: like.mode,
    context_window_tokens: like.context_window_tokens,
    max_output_tokens: like.max_output_tokens,
  }
  const body = {
    provider,
    ...entry,
    rates: { ...tiers, standard: { ...(tiers['standard'] as object | undefined), ...typed } },
    ...('value' in start && start.value !== null ? { effective_from: start.value } : {}),
  }
  return (
    <FormDialog
      title={`Set the price of ${model}`}
      submit="Set price"
      isWide
      isReady={wrong.length === 0 && 'value' in start}
      {...callbacks}
      onSubmit={() => send('PUT /gateway/v1/prices/{model}', { model }, body)}
    >
      <p>
        USD per million tokens, where no other unit is named. It applies on all nodes within two seconds.
        {like !== undefined &&
          like.id !== model &&
          ` Prefilled from ${like.id}, with its other rates, tiers and limits.`}
      </p>
      <div class="columns">
        {Object.entries(rates).map(([unit, text]) => (
          <AmountField
            key={unit}
            label={capitalize(unit.replaceAll('_', ' '))}
            value={text}
            problem={text !== '' && wrong.includes(unit) ? 'Write an amount such as 2.50.' : undefined}
            onInput={(value) => setRates({ ...rates, [unit]: value })}
          />
        ))}
        <InstantField
          label="From, UTC"
          hint="Leave empty for now. A time in the past corrects no bill by itself; tollgate rerate does."
          value={from}
          onInput={setFrom}
        />
      </div>
    </FormDialog>
  )
}
