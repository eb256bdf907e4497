import { useState } from 'preact/hooks'
import { type Call, type ListOf, type NewKey, type Overview, send, type Usage } from '../api.ts'
import { useCommand, usePermissions, useResource } from '../data.ts'
import { addDays, count, dayOf, money, monthInWords, percent, plural } from '../format.ts'
import { go, Link, withQuery } from '../router.tsx'
import { DayBars } from '../ui/chart.tsx'
import { Choices } from '../ui/choices.tsx'
import { Copy, Money, When } from '../ui/figures.tsx'
import { Failure, Show } from '../ui/states.tsx'
import { CallTable } from './requests.tsx'

/** Is everything all right, and what is it costing me? */
export function OverviewPage() {
  const today = dayOf(Date.now())
  // The bar of a day would be less than a pixel wide on a phone if the chart had a year.
  const isNarrow = innerWidth < 640
  const start = addDays(today, isNarrow ? -83 : -364)
  const overview = useResource<Overview>('/gateway/v1/overview', 3_000)
  const year = useResource<Usage>(withQuery('/v1/usage', { start, end: today, group_by: 'day' }), 15_000)
  const latest = useResource<ListOf<Call>>('/gateway/v1/requests?limit=8', 3_000)
  if (latest.value?.data.length === 0) return <FirstRun />
  const month = `${today.slice(0, 8)}01`
  return (
    <>
      <header class="page">
        <h1>Overview</h1>
      </header>
      <Show resource={overview} lines={3}>
        {(value) => (
          <div class="beside figures">
            <ul class="sums">
              <li>
                <span>{monthInWords(month)}</span>
                <b>
                  <Link to={withQuery('/requests', { start: month, end: today })}>
                    <Money usd={value.cost_usd} />
                  </Link>
                </b>
                <span>{plural(value.requests, 'call')}</span>
              </li>
              <li>
                <span>Saved against list price</span>
                <b>
                  <Link to={withQuery('/usage', { start: month, end: today })}>
                    <Money usd={value.savings_usd} />
                  </Link>
                </b>
                <span>{percent(value.savings_usd, value.list_cost_usd)}</span>
              </li>
              <li>
                <span>Credit left</span>
                <b>
                  {value.balance.enforced ? (
                    <Link to="/credits">
                      <Money usd={value.balance.balance_usd} />
                    </Link>
                  ) : (
                    '–'
                  )}
                </b>
                <span>
                  {value.balance.enforced ? `${money(value.balance.held_usd)} reserved` : 'not prepaid'}
                </span>
              </li>
              <li>
                <span>Now</span>
                <b>
                  <Link to="/requests?state=in_flight">{count(value.calls_in_flight)}</Link>
                </b>
                <span>
                  in flight
                  {value.calls_waiting > 0 && (
                    <>
                      {', '}
                      <Link to="/requests?state=waiting">{count(value.calls_waiting)} waiting</Link>
                    </>
                  )}
                </span>
              </li>
            </ul>
            <NeedsAttention of={value} />
          </div>
        )}
      </Show>
      <Show resource={year} lines={5}>
        {({ data }) => (
          <DayBars
            title={isNarrow ? 'Cost per day, 12 weeks' : 'Cost per day, a year. Click a day or draw a range.'}
            start={start}
            end={today}
            buckets={data}
            onPick={(day) => go(withQuery('/usage', { start: day, end: day }))}
            onBrush={(from, to) => go(withQuery('/usage', { start: from, end: to }))}
          />
        )}
      </Show>
      <h2>
        Latest calls <Link to="/requests?live=1">follow</Link>
      </h2>
      <Show resource={latest}>{({ data }) => <CallTable calls={data} without={null} />}</Show>
    </>
  )
}

interface Look {
  readonly to: string
  readonly title: preact.ComponentChildren
  readonly kind: 'bad' | 'high'
}

/** The findings that a person should look at. Empty on a good day. */
function looksOf({ attention }: Overview): readonly Look[] {
  const { keys_exhausted, keys_near_cap, keys_expiring, unpriced_models, refusals } = attention
  return [
    ...keys_exhausted.data.map(
      ({ id, name }): Look => ({
        kind: 'bad',
        to: `/keys/${id}`,
        title: <Of name={name}>has spent its budget</Of>,
      }),
    ),
    ...moreOf(keys_exhausted, 'bad', 'keys have spent their budget'),
    ...keys_near_cap.data.map(
      ({ id, name, percent }): Look => ({
        kind: 'high',
        to: `/keys/${id}`,
        title: <Of name={name}>is at {percent} % of its budget</Of>,
      }),
    ),
    ...moreOf(keys_near_cap, 'high', 'keys are near their budget'),
    ...keys_expiring.data.map(
      ({ id, name, expires_at }): Look => ({
        kind: 'high',
        to: `/keys/${id}`,
        title: (
          <Of name={name}>
            expires <When at={expires_at} />
          </Of>
        ),
      }),
    ),
    ...moreOf(keys_expiring, 'high', 'keys expire within a week'),
    ...unpriced_models.map(
      ({ model, requests }): Look => ({
        kind: 'bad',
        to: withQuery('/requests', { flag: 'unpriced', model }),
        title: <Of name={model}>has no price: {plural(requests, 'call')} in 7 days</Of>,
      }),
    ),
    ...refusals.map(
      ({ code, calls }): Look => ({
        kind: 'high',
        to: '/requests?state=refused',
        title: (
          <>
            {plural(calls, 'call')} refused with <code>{code}</code> in 24 h
          </>
        ),
      }),
    ),
    ...(attention.webhooks_disabled > 0
      ? [
          {
            kind: 'bad',
            to: '/webhooks',
            title: `${plural(attention.webhooks_disabled, 'webhook')} turned off`,
          } as const,
        ]
      : []),
    ...(attention.webhooks_failed_deliveries > 0
      ? [
          {
            kind: 'bad',
            to: '/webhooks',
            title: `${plural(attention.webhooks_failed_deliveries, 'webhook delivery').replace('ys', 'ies')} failed`,
          } as const,
        ]
      : []),
  ]
}

function moreOf(
  { count: all, data }: { count: number; data: readonly unknown[] },
  kind: Look['kind'],
  what: string,
): Look[] {
  return all > data.length ? [{ kind, to: '/keys', title: `${count(all - data.length)} more ${what}` }] : []
}

function Of({ name, children }: { readonly name: string; readonly children: preact.ComponentChildren }) {
  return (
    <>
      <b class="name">{name}</b> {children}
    </>
  )
}

const LOOKS_SHOWN = 5

function NeedsAttention({ of }: { readonly of: Overview }) {
  const [isWhole, showWhole] = useState(false)
  const looks = looksOf(of)
  const shown = isWhole ? looks : looks.slice(0, LOOKS_SHOWN)
  return (
    <section aria-label="Needs attention">
      <h2>Needs attention</h2>
      {looks.length === 0 && (
        <p class="quiet">
          Nothing: no budget nearly spent, no key about to expire, no model without a price.
        </p>
      )}
      <ul class="looks">
        {shown.map(({ to, title, kind }, i) => (
          <li key={i} class={kind}>
            <Link to={to}>{title}</Link>
          </li>
        ))}
      </ul>
      {looks.length > shown.length && (
        <button type="button" class="link" onClick={() => showWhole(true)}>
          {looks.length - shown.length} more
        </button>
      )}
    </section>
  )
}

const CLIENTS = {
  curl: (
    base: string,
    key: string,
  ) => `curl ${base}/v1/messages -H "x-api-key: ${key}" -H "anthropic-version: 2023-06-01" \\
  -d '{"model":"claude-haiku-5-5","max_tokens":64,"messages":[{"role":"user","content":"Hello"}]}'`,
  'Claude Code': (base: string, key: string) => `export ANTHROPIC_BASE_URL=${base}
export ANTHROPIC_AUTH_TOKEN=${key}
claude`,
  Anthropic: (base: string, key: string) => `import Anthropic from '@anthropic-ai/sdk'
const client = new Anthropic({ baseURL: '${base}', apiKey: '${key}' })
await client.messages.create({ model: 'claude-haiku-5-5', max_tokens: 64, messages: [{ role: 'user', content: 'Hello' }] })`,
  OpenAI: (base: string, key: string) => `import OpenAI from 'openai'
const client = new OpenAI({ baseURL: '${base}/v1', apiKey: '${key}' })
await client.responses.create({ model: 'gpt-6-luna', input: 'Hello' })`,
  Python: (base: string, key: string) => `from anthropic import Anthropic
client = Anthropic(base_url="${base}", api_key="${key}")
client.messages.create(model="claude-haiku-5-5", max_tokens=64, messages=[{"role": "user", "content": "Hello"}])`,
}
type Client = keyof typeof CLIENTS

/** Before the first call the page shows how to make one, and becomes the overview when the call comes. */
function FirstRun() {
  const [client, setClient] = useState<Client>('curl')
  const [key, setKey] = useState<string | null>(null)
  const command = useCommand()
  const { mayManage } = usePermissions()
  const text = CLIENTS[client](location.origin, key ?? 'svc_live_…')
  return (
    <>
      <header class="page">
        <h1>The first call</h1>
      </header>
      <p class="lead">A client changes two things: the base URL and the key.</p>
      <div class="filters">
        <Choices
          title="Client"
          options={Object.keys(CLIENTS)}
          isChosen={(name) => name === client}
          onChoose={(name) => setClient(name as Client)}
        />
        {key === null && mayManage && (
          <button
            type="button"
            class="primary"
            disabled={command.isBusy}
            onClick={() =>
              void command.run(async () =>
                setKey(
                  (await send<NewKey>('POST', '/v1/keys', { name: 'first', monthly_budget_usd: 10 })).key,
                ),
              )
            }
          >
            Create a key with a cap of $10
          </button>
        )}
        {key !== null && (
          <span class="quiet">The key is in the text below. It is shown now and never again.</span>
        )}
      </div>
      {command.error !== null && <Failure error={command.error} />}
      <pre>{text}</pre>
      <p>
        <Copy text={text} what="the example" />
      </p>
      <p role="status" class="quiet">
        waiting for the first call…
      </p>
    </>
  )
}
