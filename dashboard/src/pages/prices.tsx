import type { PriceBook, PricedModel } from '../api.ts'
import { usePermissions, useResource } from '../data.ts'
import { capitalize, exactMoney, exactTime } from '../format.ts'
import { Choices, Search } from '../parts/choices.tsx'
import { DialogButton } from '../parts/dialog.tsx'
import { Fact, Facts } from '../parts/figures.tsx'
import { Empty, Heading, Loaded, Tag } from '../parts/states.tsx'
import { Table } from '../parts/table.tsx'
import { setQuery } from '../router.tsx'
import { MissingPrices } from './missing-prices.tsx'
import { byRate, columnsOf } from './price-columns.tsx'
import { PushForm } from './push-form.tsx'

/** Lists the price of each model, and whether it comes from the list or an overlay. */
export function PricesPage({ query }: { readonly query: URLSearchParams }) {
  const { isOperator } = usePermissions()
  const search = query.get('search') ?? ''
  const provider = query.get('provider') ?? 'all'
  const sorted = query.get('sort') ?? undefined
  const prices = useResource('/gateway/v1/prices', {}, 30_000)
  return (
    <>
      <Heading title="Prices">
        {isOperator && (
          <DialogButton title="Push a list" onDone={prices.refresh}>
            {(callbacks) => <PushForm {...callbacks} />}
          </DialogButton>
        )}
      </Heading>
      {isOperator && <MissingPrices models={prices.value?.models ?? []} onSet={prices.refresh} />}
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
                      or are refused; <code>pricing.unpriced</code> decides. Operators set a price when the
                      model was asked for, or push a list.
                    </>
                  }
                />
              ) : (
                <Table
                  caption="Prices"
                  columns={columnsOf(found, isOperator ? prices.refresh : null)}
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
