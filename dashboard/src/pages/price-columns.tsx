import { Fragment } from 'preact'
import { type PricedModel, send } from '../api.ts'
import { exactMoney, exactTime, shortCount } from '../format.ts'
import { DialogButton, FormDialog } from '../parts/dialog.tsx'
import { Tag } from '../parts/states.tsx'
import type { Column } from '../parts/table.tsx'
import { SetPriceForm } from './set-price-form.tsx'

/** The rate of the standard tier, which applies to calls that name no tier. */
function rateOf({ prices: { rates = {} } }: PricedModel, kind: string): string | null {
  const tier = (rates['standard'] ?? Object.values(rates)[0]) as Tier | undefined
  const rate = tier?.[kind]
  return typeof rate === 'string' || typeof rate === 'number' ? String(rate) : null
}

/** Compares by the rate of a column; `-` sorts the highest first. Models without the rate come last. */
export function byRate(sorted: string): (a: PricedModel, b: PricedModel) => number {
  const sign = sorted.startsWith('-') ? -1 : 1
  const rate = (model: PricedModel) => Number(rateOf(model, sorted.replace('-', '')) ?? sign * 1e9) * sign
  return (a, b) => rate(a) - rate(b)
}

type Tier = Readonly<Record<string, unknown>>

/** A rate with all its digits, and at least two decimals. */
const dollars = (rate: unknown) => (rate === undefined ? '–' : exactMoney(Number(rate)).slice(1))

function moreRatesOf({ prices: { rates = {} } }: PricedModel): readonly (readonly [string, string])[] {
  const tier = (rates['standard'] ?? {}) as Tier
  const long = (tier['long_context'] ?? {}) as Tier
  const above = shortCount(Number(rates['long_context_above'] ?? 0), 0)
  const pair = (words: string, input: unknown, output: unknown) =>
    input === undefined && output === undefined
      ? []
      : [[words, `${dollars(input)} / ${dollars(output)}`] as const]
  const single = (words: string, rate: unknown) =>
    rate === undefined ? [] : [[words, dollars(rate)] as const]
  return [
    ...pair(`above ${above}`, long['input'], long['output']),
    ...pair('audio tokens', tier['audio_input'], tier['audio_output']),
    ...pair('image tokens', tier['image_input'], tier['image_output']),
    ...single('an hour of audio', tier['audio_input_per_hour']),
    ...single('a million characters', tier['input_per_million_characters']),
  ]
}

/** A column in which all rates have the same number of decimals, so that the decimal points align. */
function rateColumn(
  title: string,
  kinds: readonly string[],
  models: readonly PricedModel[],
  more: Partial<Column<PricedModel>> = {},
): Column<PricedModel> {
  const rateIn = (model: PricedModel) =>
    kinds.map((kind) => rateOf(model, kind)).find((rate) => rate !== null) ?? null
  const decimals = Math.max(2, ...models.map((model) => rateIn(model)?.split('.')[1]?.length ?? 0))
  return {
    title,
    isFigure: true,
    cell(model) {
      const rate = rateIn(model)
      return rate === null ? <span class="quiet">–</span> : Number(rate).toFixed(decimals)
    },
    ...more,
  }
}

/** `onChanged`: called after a change of a price. Null: prices cannot be changed. */
export const columnsOf = (
  models: readonly PricedModel[],
  onChanged: (() => void) | null,
): readonly Column<PricedModel>[] => [
  {
    title: 'Model',
    isWide: true,
    lead: 'left',
    cell: ({ id, aliases, retired }) => (
      <>
        <span class="name" title={aliases.length === 0 ? undefined : `also ${aliases.join(', ')}`}>
          {id}
        </span>
        {retired && <Tag kind="plain">retired</Tag>}
      </>
    ),
  },
  rateColumn('Input, USD', ['input'], models, { sort: 'input' }),
  rateColumn('Output, USD', ['output'], models, { sort: 'output' }),
  rateColumn('Cache read', ['cache_read'], models, { isMinor: true }),
  rateColumn('Cache write', ['cache_write_5m', 'cache_write_30m'], models, { isMinor: true }),
  {
    title: 'Other rates, input / output',
    cell(model) {
      const all = moreRatesOf(model)
      if (all.length === 0) return <span class="quiet minor">–</span>
      return (
        <span class="words">
          {all.map(([words, rates], i) => (
            <Fragment key={words}>
              {i > 0 && ' · '}
              {rates} <span class="quiet">{words}</span>
            </Fragment>
          ))}
        </span>
      )
    },
  },
  {
    title: 'Tiers',
    isLeast: true,
    cell: ({ prices: { rates = {} } }) =>
      Object.entries(rates)
        .filter(([tier, rate]) => tier !== 'standard' && typeof rate === 'object')
        .map(([tier]) => tier)
        .join(', ') || <span class="quiet">–</span>,
  },
  {
    title: 'Source',
    isMinor: true,
    cell: (model) => <Source of={model} onChanged={onChanged} />,
  },
  {
    title: 'Window',
    isFigure: true,
    isLeast: true,
    cell: ({ context_window_tokens: tokens }) =>
      tokens === null ? <span class="quiet">–</span> : shortCount(tokens, 0),
  },
]

interface SourceProps {
  readonly of: PricedModel
  readonly onChanged: (() => void) | null
}

function Source({ of: model, onChanged }: SourceProps) {
  const { id, provider, source, effective_from: at, shutdown_at: end, retired } = model
  return (
    <>
      {source !== 'built_in' && <Tag kind="high">{source}</Tag>}{' '}
      {end !== null && !retired ? (
        <span class="high">until {end}</span>
      ) : at !== null ? (
        <span title={exactTime(at)}>since {at.slice(0, 10)}</span>
      ) : (
        source === 'built_in' && <span class="quiet">list</span>
      )}{' '}
      {source === 'set' && onChanged !== null && (
        <>
          <DialogButton title="Change" label={`Change price of ${id}`} kind="link" onDone={onChanged}>
            {(callbacks) => <SetPriceForm model={id} provider={provider} like={model} {...callbacks} />}
          </DialogButton>{' '}
          <DialogButton title="Remove" label={`Remove price of ${id}`} kind="link" onDone={onChanged}>
            {(callbacks) => (
              <FormDialog
                title={`Remove the price of ${id}`}
                submit="Remove"
                isDangerous
                {...callbacks}
                onSubmit={() => send('DELETE /gateway/v1/prices/{model}', { model: id })}
              >
                <p>From now on the price of the list applies, or none if the list does not have the model.</p>
              </FormDialog>
            )}
          </DialogButton>
        </>
      )}
    </>
  )
}
