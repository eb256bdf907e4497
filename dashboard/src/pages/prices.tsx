import type { PriceBook, PricedModel } from '../api.ts'
import { useResource } from '../data.ts'
import { exactTime, shortCount } from '../format.ts'
import { setQuery } from '../router.tsx'
import { Empty, Show, Tag } from '../ui/states.tsx'
import { type Column, Table } from '../ui/table.tsx'

/** What does a model cost here, and where does that price come from? */
export function PricesPage({ query }: { readonly query: URLSearchParams }) {
  const search = query.get('search') ?? ''
  const book = useResource<PriceBook>('/gateway/v1/prices', 30_000)
  return (
    <>
      <header class="page">
        <h1>Prices</h1>
      </header>
      <div class="filters">
        <input
          type="search"
          aria-label="Search models"
          placeholder="Model  /"
          value={search}
          onInput={(event) => setQuery({ search: event.currentTarget.value }, 'replace')}
        />
      </div>
      <Show resource={book} lines={10}>
        {({ models, price_version, overlay, upcoming }) => {
          const found = models.filter(({ id, aliases }) =>
            [id, ...aliases].some((name) => name.includes(search.trim().toLowerCase())),
          )
          return (
            <>
              <p class="quiet">
                List prices of {price_version}, per million tokens
                {overlay !== null && (
                  <>
                    , changed by <code>{overlay}</code>
                  </>
                )}
                .
                {upcoming.map((version) => (
                  <span key={version.price_version}>
                    {' '}
                    {version.price_version} comes into force{' '}
                    {version.effective_from === null ? '' : exactTime(version.effective_from)}.
                  </span>
                ))}
              </p>
              {found.length === 0 ? (
                <Empty>
                  <p>
                    No model has that name. A call for it is billed at 0 and marked{' '}
                    <Tag kind="look">unpriced</Tag>, or refused where
                    <code> pricing.unpriced</code> says so. Prices of your own go into the file of{' '}
                    <code>TOLLGATE_PRICES</code>.
                  </p>
                </Empty>
              ) : (
                <Table
                  caption="Prices"
                  columns={columnsOf(found)}
                  rows={found}
                  keyOf={({ id, provider }) => `${provider} ${id}`}
                  rowClass={({ retired }) => (retired ? 'dead' : undefined)}
                />
              )}
            </>
          )
        }}
      </Show>
    </>
  )
}

/** The rate of the standard tier, by which a call is priced that names no other. */
function rateOf({ prices: { rates = {} } }: PricedModel, kind: string): string | null {
  const tier = (rates['standard'] ?? Object.values(rates)[0]) as Readonly<Record<string, unknown>> | undefined
  const rate = tier?.[kind]
  return typeof rate === 'string' || typeof rate === 'number' ? String(rate) : null
}

/** A column whose rates have as many decimals as the longest, so that points stand below each other. */
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
        {source === 'overlay' && <Tag kind="look">yours</Tag>}
        {retired && <Tag kind="plain">retired</Tag>}
      </>
    ),
  },
  { title: 'Provider', isMinor: true, cell: ({ provider }) => provider },
  rateColumn('Input, USD', ['input'], models),
  rateColumn('Output, USD', ['output'], models),
  rateColumn('Cache read', ['cache_read'], models, { isMinor: true }),
  rateColumn('Cache write', ['cache_write_5m', 'cache_write_30m'], models, { isMinor: true }),
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
    isMinor: true,
    cell: ({ context_window_tokens: tokens }) =>
      tokens === null ? <span class="quiet">–</span> : shortCount(tokens, 0),
  },
]
