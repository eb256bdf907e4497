import { useState } from 'preact/hooks'
import { type Delivery, type ListOf, send, WEBHOOK_EVENTS, type Webhook } from '../api.ts'
import { useCommand, usePermissions, useResource } from '../data.ts'
import { count } from '../format.ts'
import { Link, setQuery } from '../router.tsx'
import { ConfirmByName, Field, FormDialog } from '../ui/dialog.tsx'
import { Fact, Facts } from '../ui/facts.tsx'
import { Id, When } from '../ui/figures.tsx'
import { Empty, Failure, Show, Tag } from '../ui/states.tsx'
import { Table } from '../ui/table.tsx'
import { SecretDialog } from './key-form.tsx'

const DISABLED: Readonly<Record<string, string>> = {
  gone: 'it answered 410 Gone',
  failing: 'it failed for five days',
  manual: 'turned off',
}

/** Which events are sent to other systems, and did they arrive? */
export function WebhooksPage({ query }: { readonly query: URLSearchParams }) {
  const { mayManage } = usePermissions()
  const [isCreating, setCreating] = useState(false)
  const [secret, setSecret] = useState<string | null>(null)
  const webhooks = useResource<ListOf<Webhook>>('/gateway/v1/webhooks?limit=100', 5_000)
  const id = query.get('id')
  const chosen = webhooks.value?.data.find((each) => each.id === id) ?? null
  return (
    <>
      <header class="page">
        <h1>Webhooks</h1>
        {mayManage && (
          <button type="button" class="primary" onClick={() => setCreating(true)}>
            New endpoint
          </button>
        )}
      </header>
      <Show resource={webhooks} lines={3}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty>
              <p>
                Get notified when a budget is nearly spent, a key expires or a model has no price: in Slack,
                or by a signed POST to a system of yours.
              </p>
            </Empty>
          ) : (
            <Table
              caption="Endpoints"
              rows={data}
              keyOf={({ id }) => id}
              columns={[
                {
                  title: 'URL',
                  isWide: true,
                  lead: 'left',
                  cell: ({ id, url }) => (
                    <Link to={`/webhooks?id=${id}`} class="name">
                      {url}
                    </Link>
                  ),
                },
                {
                  title: 'Events',
                  isMinor: true,
                  cell: ({ events }) =>
                    events.includes('*') ? (
                      'all'
                    ) : events.length === 1 ? (
                      events[0]
                    ) : (
                      <span title={events.join('\n')}>{events.length} kinds</span>
                    ),
                },
                { title: 'Format', isMinor: true, cell: ({ format }) => format },
                { title: 'State', cell: (webhook) => <State of={webhook} /> },
                { title: 'Last delivery', cell: ({ last_delivery_at }) => <When at={last_delivery_at} /> },
              ]}
            />
          )
        }
      </Show>
      {chosen !== null && <OneWebhook of={chosen} onChanged={webhooks.refresh} onSecret={setSecret} />}
      {isCreating && (
        <WebhookForm
          onClose={() => setCreating(false)}
          onDone={(made) => {
            setCreating(false)
            setSecret(made.secret)
            setQuery({ id: made.id })
            webhooks.refresh()
          }}
        />
      )}
      {secret !== null && (
        <SecretDialog
          title="The signing secret"
          secret={secret}
          hint="Your receiver checks signatures with it."
          onClose={() => setSecret(null)}
        />
      )}
    </>
  )
}

function State({ of: { enabled, disabled_reason, last_status } }: { readonly of: Webhook }) {
  if (!enabled) return <Tag kind="bad">off: {DISABLED[disabled_reason ?? 'manual'] ?? disabled_reason}</Tag>
  if (last_status === null) return <span class="quiet">on</span>
  return last_status < 300 ? (
    <span>on, {last_status}</span>
  ) : (
    <Tag kind="look">on, last answer {last_status}</Tag>
  )
}

function OneWebhook({
  of: webhook,
  onChanged,
  onSecret,
}: {
  readonly of: Webhook
  onChanged(): void
  onSecret(secret: string): void
}) {
  const { mayManage } = usePermissions()
  const [isDeleting, setDeleting] = useState(false)
  const base = `/gateway/v1/webhooks/${webhook.id}`
  const deliveries = useResource<ListOf<Delivery>>(`${base}/deliveries?limit=50`, 3_000)
  const command = useCommand()
  const run = (action: () => Promise<unknown>) =>
    void command.run(async () => {
      await action()
      onChanged()
      deliveries.refresh()
    })
  return (
    <section aria-label={webhook.url}>
      <h2 class="name">{webhook.url}</h2>
      <div class="buttons" hidden={!mayManage}>
        <button
          type="button"
          disabled={command.isBusy || !webhook.enabled}
          onClick={() => run(() => send('POST', `${base}/test`))}
        >
          Send a test
        </button>
        <button
          type="button"
          disabled={command.isBusy}
          onClick={() => run(() => send('PATCH', base, { enabled: !webhook.enabled }))}
        >
          {webhook.enabled ? 'Turn off' : 'Turn on'}
        </button>
        <button
          type="button"
          disabled={command.isBusy}
          onClick={() =>
            run(async () =>
              onSecret((await send<{ secret: string }>('POST', `${base}/rotate-secret`)).secret),
            )
          }
        >
          New secret
        </button>
        <button type="button" class="danger" onClick={() => setDeleting(true)}>
          Delete
        </button>
      </div>
      {command.error !== null && <Failure error={command.error} />}
      <Facts>
        <Fact title="Id">
          <Id id={webhook.id} />
        </Fact>
        <Fact title="Events">{webhook.events.includes('*') ? 'all' : webhook.events.join(', ')}</Fact>
        {webhook.description !== '' && <Fact title="Description">{webhook.description}</Fact>}
      </Facts>
      <h2>Deliveries</h2>
      <Show resource={deliveries}>
        {({ data }) =>
          data.length === 0 ? (
            <p class="quiet">None yet.</p>
          ) : (
            <Table
              caption="Deliveries"
              rows={data}
              keyOf={({ id }) => id}
              columns={[
                { title: 'When', cell: ({ created_at }) => <When at={created_at} /> },
                { title: 'Event', lead: 'left', cell: ({ event_type }) => event_type },
                { title: 'Outcome', cell: (delivery) => <DeliveryState of={delivery} /> },
                { title: 'Attempts', isFigure: true, isMinor: true, cell: ({ attempts }) => count(attempts) },
                {
                  title: 'Next',
                  isMinor: true,
                  cell: ({ next_attempt_at }) => <When at={next_attempt_at} never="–" />,
                },
                {
                  title: <span class="unseen">Action</span>,
                  isFigure: true,
                  lead: 'right',
                  cell: ({ id, event_type }) =>
                    mayManage && (
                      <button
                        type="button"
                        class="link"
                        aria-label={`Retry ${event_type}`}
                        onClick={() => run(() => send('POST', `${base}/deliveries/${id}/redeliver`))}
                      >
                        Retry
                      </button>
                    ),
                },
              ]}
            />
          )
        }
      </Show>
      {isDeleting && (
        <ConfirmByName
          title="Delete this endpoint"
          name={new URL(webhook.url).hostname}
          submit="Delete"
          onClose={() => setDeleting(false)}
          onSubmit={async () => {
            await send('DELETE', base)
            setQuery({ id: null })
            onChanged()
          }}
        >
          <p>Nothing more is sent to it, and what was sent is forgotten.</p>
        </ConfirmByName>
      )}
    </section>
  )
}

function DeliveryState({ of: delivery }: { readonly of: Delivery }) {
  const { status, attempts, response_status: answer, error } = delivery
  if (status === 'succeeded') return <span>delivered {answer}</span>
  if (attempts === 0) return <Tag kind="plain">queued</Tag>
  return (
    <>
      {status === 'failed' ? <Tag kind="bad">given up</Tag> : <Tag kind="look">not yet</Tag>}
      <span class="why quiet">{error ?? (answer === null ? 'no answer' : `it answered ${answer}`)}</span>
    </>
  )
}

function WebhookForm({
  onClose,
  onDone,
}: {
  onClose(): void
  onDone(made: Webhook & { secret: string }): void
}) {
  const [url, setUrl] = useState('')
  const [description, setDescription] = useState('')
  const [format, setFormat] = useState<'standard' | 'slack'>('standard')
  const [events, setEvents] = useState<ReadonlySet<string>>(
    new Set(['key.budget.threshold', 'key.budget.exceeded']),
  )
  function toggle(event: string): void {
    const chosen = new Set(events)
    if (!chosen.delete(event)) chosen.add(event)
    setEvents(chosen)
  }
  return (
    <FormDialog
      title="New endpoint"
      submit="Create endpoint"
      isReady={url !== '' && events.size > 0}
      onClose={onClose}
      onSubmit={async () =>
        onDone(await send('POST', '/gateway/v1/webhooks', { url, description, format, events: [...events] }))
      }
    >
      <Field label="URL">
        {(id) => (
          <input
            id={id}
            type="url"
            required
            placeholder="https://…"
            value={url}
            onInput={(event) => setUrl(event.currentTarget.value.trim())}
          />
        )}
      </Field>
      <Field label="Format" hint="Slack also suits whatever takes Slack's incoming webhooks.">
        {(id) => (
          <select
            id={id}
            value={format}
            onChange={(event) => setFormat(event.currentTarget.value as 'standard' | 'slack')}
          >
            <option value="standard">JSON, signed (Standard Webhooks)</option>
            <option value="slack">A message for Slack</option>
          </select>
        )}
      </Field>
      <fieldset>
        <legend>Events</legend>
        {WEBHOOK_EVENTS.map((event) => (
          <label key={event} class="check">
            <input type="checkbox" checked={events.has(event)} onChange={() => toggle(event)} /> {event}
          </label>
        ))}
      </fieldset>
      <Field label="Description">
        {(id) => (
          <input
            id={id}
            maxLength={200}
            value={description}
            onInput={(event) => setDescription(event.currentTarget.value)}
          />
        )}
      </Field>
    </FormDialog>
  )
}
