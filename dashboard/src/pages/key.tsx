import { useState } from 'preact/hooks'
import { type Call, type Key, type ListOf, type NewKey, send, type Usage } from '../api.ts'
import { useCommand, useNow, usePermissions, useResource } from '../data.ts'
import { addDays, columnDecimals, count, dayOf, duration, exactTime, inWords, plural } from '../format.ts'
import { go, Link, setQuery, usePlace, withQuery } from '../router.tsx'
import { DayBars } from '../ui/chart.tsx'
import { ConfirmByName } from '../ui/dialog.tsx'
import { Fact, Facts } from '../ui/facts.tsx'
import { BudgetBar, Id, Money, When } from '../ui/figures.tsx'
import { Failure, Show, Tag } from '../ui/states.tsx'
import { KeyForm, SecretDialog } from './key-form.tsx'
import { CallTable } from './requests.tsx'

/** Can I revoke this key now? When it was last used, by which client, and the steps of rotating it. */
export function KeyPage({ id }: { readonly id: string }) {
  const [dialog, setDialog] = useState<'edit' | 'revoke' | null>(null)
  const [made, setMade] = useState<NewKey | null>(null)
  const key = useResource<Key>(`/v1/keys/${id}`, 3_000)
  const calls = useResource<ListOf<Call>>(`/v1/keys/${id}/requests?limit=10`, 3_000)
  const command = useCommand()
  const { mayManage } = usePermissions()

  return (
    <Show resource={key} lines={6}>
      {(value) => {
        const isUsable = value.status === 'usable'
        const last = calls.value?.data[0]
        return (
          <>
            <header class="page">
              <h1 class="name">{value.name}</h1>
              {!isUsable && <Tag kind="bad">{value.status}</Tag>}
              {isUsable && mayManage && (
                <span class="buttons">
                  <button type="button" onClick={() => setDialog('edit')}>
                    Change limits
                  </button>
                  <button
                    type="button"
                    disabled={command.isBusy}
                    onClick={() =>
                      void command.run(async () =>
                        setMade(await send<NewKey>('POST', `/v1/keys/${id}/rotate`, {})),
                      )
                    }
                  >
                    Rotate
                  </button>
                  <button type="button" class="danger" onClick={() => setDialog('revoke')}>
                    Revoke
                  </button>
                </span>
              )}
            </header>
            {command.error !== null && <Failure error={command.error} />}
            <p class="lead">
              {value.last_used_at === null ? (
                'It was never used.'
              ) : (
                <>
                  Last used{' '}
                  <b>
                    <When at={value.last_used_at} />
                  </b>
                  {last !== undefined && <LastUse of={last} />}
                </>
              )}
            </p>
            <Rotation of={value} onRevoke={mayManage ? () => setDialog('revoke') : null} />
            <Facts>
              <Fact title="This month">
                <Link to={callsOf(value, dayOf(Date.now()).slice(0, 8).concat('01'))}>
                  <BudgetBar budget={value} />
                </Link>
                {value.month_waiting > 0 && (
                  <Tag kind="look">{count(value.month_waiting)} wait for room under the cap</Tag>
                )}
                {value.month_lost_usd > 0 && (
                  <Tag kind="look">
                    up to <Money usd={value.month_lost_usd} /> of calls were lost in a crash
                  </Tag>
                )}
              </Fact>
              <Fact title="Resets">
                <When at={value.budget_resets_at} />
              </Fact>
              {value.daily_budget_usd !== null && (
                <Fact title="Today">
                  <Money usd={value.day_spend_usd} /> of <Money usd={value.daily_budget_usd} /> a day
                </Fact>
              )}
              {value.requests_per_minute !== null && (
                <Fact title="Rate">{count(value.requests_per_minute)} requests per minute</Fact>
              )}
              {value.budget_mode !== null && <Fact title="Budget mode">{value.budget_mode}</Fact>}
              {Object.keys(value.metadata).length > 0 && (
                <Fact title="Metadata">
                  {Object.entries(value.metadata).map(([name, text]) => (
                    <code key={name}>{`${name}=${text} `}</code>
                  ))}
                </Fact>
              )}
              <Fact title="Models">
                {value.allowed_models === null
                  ? 'all'
                  : value.allowed_models.map((model) => <code key={model}>{model} </code>)}
              </Fact>
              <Fact title="Expires">
                <When at={value.expires_at} />
              </Fact>
              <Fact title="Request log">
                {value.log_requests ? 'Logging on: bodies are stored' : 'Logging off'}
              </Fact>
              <Fact title="Created">
                <When at={value.created_at} />
                {value.rotated_from !== null && (
                  <>
                    {' in place of '}
                    <Link to={`/keys/${value.rotated_from}`}>an earlier key</Link>
                  </>
                )}
              </Fact>
              {value.revoked_at !== null && <Fact title="Revoked">{exactTime(value.revoked_at)}</Fact>}
              <Fact title="Key">
                <code>{`${value.prefix}…${value.last4}`}</code>
              </Fact>
              <Fact title="Id">
                <Id id={value.id} />
              </Fact>
            </Facts>
            <KeyModels id={id} />
            <h2>
              Latest calls <Link to={withQuery('/requests', { key: id })}>all of them</Link>
            </h2>
            <Show resource={calls}>{({ data }) => <CallTable calls={data} without="key" />}</Show>
            {dialog === 'edit' && (
              <KeyForm
                edited={value}
                onClose={() => setDialog(null)}
                onDone={() => {
                  setDialog(null)
                  key.refresh()
                }}
              />
            )}
            {dialog === 'revoke' && (
              <ConfirmByName
                title="Revoke this key"
                name={value.name}
                submit="Revoke"
                onClose={() => setDialog(null)}
                onSubmit={async () => {
                  await send('POST', `/v1/keys/${id}/revoke`)
                  setDialog(null)
                  key.refresh()
                }}
              >
                <p>
                  No call is admitted with it from the moment this is done, on any node. Streams that run come
                  to their end. It cannot be undone.
                </p>
                {value.last_used_at !== null && (
                  <p>
                    It was last used{' '}
                    <b>
                      <When at={value.last_used_at} />
                    </b>
                    .
                  </p>
                )}
              </ConfirmByName>
            )}
            {made !== null && (
              <SecretDialog
                title={`The new key ${made.name}`}
                secret={made.key}
                hint="Put it where your client reads its API key. The old one keeps working until it is revoked."
                onClose={() => {
                  setMade(null)
                  go(withQuery(`/keys/${id}`, { successor: made.id }))
                }}
              />
            )}
          </>
        )
      }}
    </Show>
  )
}

function callsOf({ id }: Key, start: string): string {
  return withQuery('/requests', { key: id, start })
}

/** The client of the last call. */
function LastUse({ of: { user_agent, client_ip, id } }: { readonly of: Call }) {
  return (
    <>
      {user_agent !== null && (
        <>
          {' '}
          by <b class="name">{user_agent}</b>
        </>
      )}{' '}
      from <code>{client_ip}</code>. <Link to={`/requests/${id}`}>View request</Link>
    </>
  )
}

const QUIET_CHOICES_MS = [60_000, 3_600_000, 86_400_000, 7 * 86_400_000]

/**
 * Rotating a key, in steps that can be left and taken up again: the successor and how long the old key has to be quiet
 * are in the URL. No step is refused; the page only warns.
 */
function Rotation({ of: key, onRevoke }: { readonly of: Key; readonly onRevoke: (() => void) | null }) {
  const { query } = usePlace()
  const now = useNow(1_000)
  const successorId = query.get('successor')
  const successor = useResource<Key>(successorId === null ? null : `/v1/keys/${successorId}`, 3_000)
  if (successorId === null) return null
  const quietMs = Number(query.get('quiet') ?? 3_600_000)
  const usedMs = key.last_used_at === null ? null : now - Date.parse(key.last_used_at)
  const isQuiet = usedMs === null || usedMs >= quietMs
  const steps: readonly {
    readonly title: string
    readonly isDone: boolean
    readonly text: preact.ComponentChildren
  }[] = [
    {
      title: 'The new key is created',
      isDone: true,
      text: <Link to={`/keys/${successorId}`}>{successor.value?.name ?? 'the new key'}</Link>,
    },
    {
      title: 'It is deployed',
      isDone: successor.value?.last_used_at != null,
      text:
        successor.value?.last_used_at == null ? (
          'It has not been used yet.'
        ) : (
          <>
            First seen, last used <When at={successor.value.last_used_at} />
          </>
        ),
    },
    {
      title: 'The old key is quiet',
      isDone: isQuiet,
      text: (
        <>
          <span>
            {key.last_used_at === null
              ? 'Never used'
              : `Last used ${inWords(Date.parse(key.last_used_at), now)}`}
          </span>
          <label>
            Quiet is{' '}
            <select
              value={quietMs}
              onChange={(event) => setQuery({ quiet: event.currentTarget.value }, 'replace')}
            >
              {QUIET_CHOICES_MS.map((ms) => (
                <option key={ms} value={ms}>
                  {ms === 3_600_000 ? '1 hour' : duration(ms).replace(' 0 s', '')}
                </option>
              ))}
            </select>
          </label>
        </>
      ),
    },
    {
      title: 'The old key is revoked',
      isDone: key.status !== 'usable',
      text:
        key.status !== 'usable' ? (
          'Done.'
        ) : (
          <>
            {onRevoke !== null && (
              <button type="button" class={isQuiet ? 'primary' : undefined} onClick={onRevoke}>
                Revoke the old key
              </button>
            )}
            {!isQuiet && <span class="high">Something still uses it.</span>}
          </>
        ),
    },
  ]
  return (
    <ol class="steps" aria-label="Rotating this key">
      {steps.map(({ title, isDone, text }) => (
        <li key={title} class={isDone ? 'done' : undefined}>
          <b>{title}</b>
          <span>{text}</span>
        </li>
      ))}
    </ol>
  )
}

/** The key's spend in the last thirty days, by day and by model. */
function KeyModels({ id }: { readonly id: string }) {
  const end = dayOf(Date.now())
  const start = addDays(end, -29)
  const asked = { start, end, key: id }
  const days = useResource<Usage>(withQuery('/v1/usage', { ...asked, group_by: 'day' }), 15_000)
  const usage = useResource<Usage>(withQuery('/v1/usage', { ...asked, group_by: 'model' }), 15_000)
  const own = usage.value?.data ?? []
  if (own.length === 0 || days.value === null) return null
  const open = (start: string, end: string) => go(withQuery('/requests', { key: id, start, end }))
  return (
    <div class="beside">
      <DayBars
        title="Cost per day, 30 days"
        start={start}
        end={end}
        buckets={days.value.data}
        onPick={(day) => open(day, day)}
        onBrush={open}
      />
      <section aria-label="Models, 30 days">
        <h2>Models, 30 days</h2>
        <ul class="doors">
          {[...own]
            .sort((a, b) => b.cost_usd - a.cost_usd)
            .map(({ model = '', cost_usd, requests }) => (
              <li key={model}>
                <Link to={withQuery('/requests', { key: id, model, start, end })}>
                  <span>{model}</span>
                  <span class="quiet">{plural(requests, 'call')}</span>
                  <Money
                    usd={cost_usd}
                    decimals={Math.max(2, columnDecimals(own.map((each) => each.cost_usd)))}
                  />
                </Link>
              </li>
            ))}
        </ul>
      </section>
    </div>
  )
}
