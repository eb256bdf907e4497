import { Fragment } from 'preact'
import type { PriceBook, PricedModel } from '../api.ts'
import { useResource } from '../data.ts'
import { capitalize, exactMoney, exactTime, shortCount } from '../format.ts'
import { setQuery } from '../router.tsx'
import { Choices, Search } from '../ui/choices.tsx'
import { Fact, Facts } from '../ui/facts.tsx'
import { Empty, Heading, Loaded, Tag } from '../ui/states.tsx'
import { type Column, Table } from '../ui/table.tsx'

/** Lists the price of each model, and whether it comes from the list or an overlay. */
export function PricesPage({ query }: { readonly query: URLSearchParams }) {
  const search = query.get('search') ?? ''
  const provider = query.get('provider') ?? 'all'
  const sorted = query.get('sort') ?? undefined
  const prices = useResource<PriceBook>('/gateway/v1/prices', 30_000)
  return (
    <>
      <Heading title="Prices" />
      <div class="filters">
        <Search title="Search models" placeholder="Model" value={search} />
        <Choices
          title="Provider"
          options={['all', ...new Set(prices.value?.models.map(({ provider }) => provider) ?? [])]}
          nameOf={providerName}
          isChosen={(each) => each === provider}
          onChoose={(each) => setQuery({ provider: each === 'all' ? null : each })}
        />
      </div>
      <Loaded resource={prices} lines={10}>
        {(book) => {
          const { models, price_version, overlay, upcoming } = book
          const found = models
            .filter((model) => provider === 'all' || model.provider === provider)
            .filter(({ id, aliases }) =>
              [id, ...aliases].some((name) => name.includes(search.trim().toLowerCase())),
            )
            .toSorted(newestFirst)
            .toSorted(sorted === undefined ? () => 0 : byRate(sorted))
          return (
            <>
              <p class="quiet">
                List prices of {price_version}, USD per million tokens where no other unit is named
                {overlay !== null && (
                  <>
                    , changed by <code>{overlay}</code>
                  </>
                )}
                .
                {upcoming.map((version) => (
                  <span key={version.price_version}>
                    {' '}
                    {version.price_version} takes effect{' '}
                    {version.effective_from === null ? '' : exactTime(version.effective_from)}.
                  </span>
                ))}
              </p>
              {found.length === 0 ? (
                <Empty
                  title="No model has that name."
                  words={
                    <>
                      Calls to a model without a price cost 0 and are marked <Tag kind="high">unpriced</Tag>,
                      or are refused; <code>pricing.unpriced</code> decides. To add a price, write it to the
                      file of <code>TOLLGATE_PRICES</code>.
                    </>
                  }
                />
              ) : (
                <Table
                  caption="Prices"
                  columns={columnsOf(found)}
                  rows={found}
                  sorted={sorted}
                  {...(sorted === undefined ? { groupOf } : {})}
                  rowClass={({ retired }) => (retired ? 'dead' : undefined)}
                />
              )}
              {search === '' && <Tools of={book} provider={provider} />}
            </>
          )
        }}
      </Loaded>
    </>
  )
}

const providerName = (provider: string) => (provider === 'openai' ? 'OpenAI' : capitalize(provider))

/** Prices of tools, which do not depend on the model. The name of a tool includes the unit. */
function Tools({ of: { tools }, provider: chosen }: { readonly of: PriceBook; readonly provider: string }) {
  const words = (text = '') => text.replaceAll('_', ' ').replace('1000', '1,000 calls')
  return (
    <>
      <h2>Tools</h2>
      <Facts>
        {Object.entries(tools as Readonly<Record<string, Readonly<Record<string, string>>>>)
          .filter(([provider]) => chosen === 'all' || provider === chosen)
          .flatMap(([provider, rates]) =>
            Object.entries(rates).map(([id, usd]) => (
              <Fact key={provider + id} title={capitalize(words(id.split('_per_')[0]))}>
                {exactMoney(Number(usd))} per {words(id.split('_per_')[1])}{' '}
                <span class="quiet">{providerName(provider)}</span>
              </Fact>
            )),
          )}
      </Facts>
    </>
  )
}

/** The modes of models, in the order of their groups. All other modes are text. */
const MODES: Readonly<Record<string, string>> = {
  image: 'images',
  realtime: 'realtime',
  audio_speech: 'speech',
  audio_transcription: 'transcription',
  audio_translation: 'translation',
  embedding: 'embeddings',
  moderation: 'moderation',
}
const modeRank = ({ mode }: PricedModel) => Object.keys(MODES).indexOf(mode)

const groupOf = ({ provider, mode, retired }: PricedModel) =>
  `${providerName(provider)}, ${retired ? 'retired' : (MODES[mode] ?? 'text')}`

function newestFirst(a: PricedModel, b: PricedModel): number {
  return (
    Number(a.retired) - Number(b.retired) ||
    a.provider.localeCompare(b.provider) ||
    (a.retired ? 0 : modeRank(a) - modeRank(b)) ||
    versionOf(b.id) - versionOf(a.id) ||
    a.id.localeCompare(b.id)
  )
}

/** The version in a name: 5.5 in `claude-opus-5-5`, 6.1 in `gpt-6.1-sol`. A date is not a version. */
function versionOf(id: string): number {
  const [, major = '0', minor = '0'] = /-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/.exec(id) ?? []
  return Number(major) + Number(minor) / 100
}

/** The rate of the standard tier, which applies to calls that name no tier. */
function rateOf({ prices: { rates = {} } }: PricedModel, kind: string): string | null {
  const tier = (rates['standard'] ?? Object.values(rates)[0]) as Tier | undefined
  const rate = tier?.[kind]
  return typeof rate === 'string' || typeof rate === 'number' ? String(rate) : null
}

/** Compares by the rate of a column; `-` sorts the highest first. Models without the rate come last. */
function byRate(sorted: string): (a: PricedModel, b: PricedModel) => number {
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

const columnsOf = (models: readonly PricedModel[]): readonly Column<PricedModel>[] => [
  {
    title: 'Model',
    isWide: true,
    lead: 'left',
    cell: ({ id, aliases, source, retired }) => (
      <>
        <span class="name" title={aliases.length === 0 ? undefined : `also ${aliases.join(', ')}`}>
          {id}
        </span>
        {source === 'overlay' && <Tag kind="high">overlay</Tag>}
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
    isMinor: true,
    cell: ({ prices: { rates = {} } }) =>
      Object.entries(rates)
        .filter(([tier, rate]) => tier !== 'standard' && typeof rate === 'object')
        .map(([tier]) => tier)
        .join(', ') || <span class="quiet">–</span>,
  },
  {
    title: 'Window',
    isFigure: true,
    isLeast: true,
    cell: ({ context_window_tokens: tokens }) =>
      tokens === null ? <span class="quiet">–</span> : shortCount(tokens, 0),
  },
]
