import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { EVENT_TYPES } from '../../../src/kernel/vocabulary.ts'
import { type ActivityEvent, type Delivery, type ListOf, save, send, type Webhook } from '../api.ts'
import { type Resource, useCommand, usePermissions, useResource } from '../data.ts'
import { addDays, capitalize, count, plural } from '../format.ts'
import { Link, setQuery, withQuery } from '../router.tsx'
import { Button } from '../ui/button.tsx'
import { ConfirmByName, Dialog, DialogButton, type FormCallbacks, FormDialog } from '../ui/dialog.tsx'
import { Fact, Facts } from '../ui/facts.tsx'
import { CheckField, SelectField, TextField, useFields } from '../ui/fields.tsx'
import { Id, RelativeTime, Snippet, Timestamp } from '../ui/figures.tsx'
import { Empty, Failure, Heading, Loaded, Tag } from '../ui/states.tsx'
import { actionColumn, nameColumn, shortList, Table } from '../ui/table.tsx'
import { SecretDialog } from './key-form.tsx'

/** All events except the test, which is sent on demand only. */
const EVENTS = EVENT_TYPES.filter((type) => type !== 'webhook.test')
const DISABLED: Readonly<Record<string, string>> = {
  gone: 'it answered 410 Gone',
  failing: 'it failed for five days',
  manual: 'turned off',
}

/** Lists webhooks with their events and deliveries. */
export function WebhooksPage({ query }: { readonly query: URLSearchParams }) {
  const { mayManage } = usePermissions()
  const [isCreating, setCreating] = useState(false)
  const [secret, setSecret] = useState<string | null>(null)
  const webhooks = useResource<ListOf<Webhook>>('/gateway/v1/webhooks?limit=100', 5_000)
  const id = query.get('id')
  const chosen = webhooks.value?.data.find((each) => each.id === id) ?? null
  const create = (title: string) =>
    mayManage && <Button title={title} kind="primary" onClick={() => setCreating(true)} />
  return (
    <>
      <Heading title="Webhooks">{create('New webhook')}</Heading>
      <WebhookTable webhooks={webhooks} chosen={id} action={create('Add a webhook')} />
      {chosen !== null && <OneWebhook of={chosen} onChanged={webhooks.refresh} onSecret={setSecret} />}
      {isCreating && (
        <WebhookForm
          edited={null}
          onClose={() => setCreating(false)}
          onDone={(made) => {
            setCreating(false)
            setSecret(made.secret ?? null)
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

interface WebhookTableProps {
  readonly webhooks: Resource<ListOf<Webhook>>
  readonly chosen?: string | null
  readonly action?: ComponentChildren
}

export function WebhookTable({ webhooks, chosen, action }: WebhookTableProps) {
  return (
    <Loaded resource={webhooks} lines={3}>
      {({ data }) =>
        data.length === 0 ? (
          <Empty
            title="No webhook yet."
            words="Get notified when a budget is nearly spent, a key expires or a model has no price: in Slack, or by a signed POST to a system of yours."
            action={action ?? <Link to="/webhooks">Webhooks</Link>}
          />
        ) : (
          <Table
            caption="Webhooks"
            rows={data}
            rowClass={({ id }) => (id === chosen ? 'current' : undefined)}
            columns={[
              nameColumn<Webhook>({
                title: 'Webhook',
                name: ({ url }) => url,
                to: ({ id }) => `/webhooks?id=${id}`,
              }),
              {
                title: 'Events',
                isMinor: true,
                cell: ({ events }) => shortList(events.includes('*') ? null : events, 'events'),
              },
              { title: 'Format', isMinor: true, cell: ({ format }) => capitalize(format) },
              { title: 'State', cell: (webhook) => <WebhookState of={webhook} /> },
              {
                title: 'Last attempt',
                cell: ({ last_delivery_at }) => <RelativeTime at={last_delivery_at} />,
              },
            ]}
          />
        )
      }
    </Loaded>
  )
}

/** An enabled webhook that fails or has never answered is marked, because it needs attention. */
function WebhookState({ of: webhook }: { readonly of: Webhook }) {
  const { enabled, disabled_reason, last_status, last_delivery_at } = webhook
  if (!enabled) return <Tag kind="bad">off: {DISABLED[disabled_reason ?? 'manual'] ?? disabled_reason}</Tag>
  if (last_delivery_at === null) return <span class="quiet">On, nothing sent yet</span>
  if (last_status === null) return <Tag kind="bad">failing: no answer</Tag>
  return last_status < 300 ? (
    <span>On, it answered {last_status}</span>
  ) : (
    <Tag kind="bad">failing: it answered {last_status}</Tag>
  )
}

interface OneWebhookProps {
  readonly of: Webhook
  onChanged(): void
  onSecret(secret: string): void
}

function OneWebhook({ of: webhook, onChanged, onSecret }: OneWebhookProps) {
  const { mayManage } = usePermissions()
  const [opened, setOpened] = useState<string | null>(null)
  const base = `/gateway/v1/webhooks/${webhook.id}`
  const deliveries = useResource<ListOf<Delivery>>(`${base}/deliveries?limit=50`, 3_000)
  const command = useCommand()
  const run = (action: () => Promise<unknown>) =>
    void command.run(async () => {
      await action()
      onChanged()
      deliveries.refresh()
    })
  const retry = (id: string) => run(() => send('POST', `${base}/deliveries/${id}/redeliver`))
  const rotateSecret = async () =>
    onSecret((await send<{ secret: string }>('POST', `${base}/rotate-secret`)).secret)
  function leave(): void {
    setQuery({ id: null })
    onChanged()
  }
  const shown = deliveries.value?.data.find(({ id }) => id === opened)
  return (
    <section aria-label={webhook.url}>
      <h2 class="name">{webhook.url}</h2>
      {mayManage && (
        <div class="buttons">
          <Button
            title="Send a test"
            isDisabled={command.isBusy || !webhook.enabled}
            onClick={() => run(() => send('POST', `${base}/test`))}
          />
          <DialogButton title="Edit" onDone={onChanged}>
            {(callbacks) => <WebhookForm edited={webhook} {...callbacks} />}
          </DialogButton>
          <Button
            title={webhook.enabled ? 'Turn off' : 'Turn on'}
            isDisabled={command.isBusy}
            onClick={() => run(() => send('PATCH', base, { enabled: !webhook.enabled }))}
          />
          <Button title="New secret" isDisabled={command.isBusy} onClick={() => run(rotateSecret)} />
          <DialogButton title="Delete" kind="danger" onDone={leave}>
            {(callbacks) => (
              <ConfirmByName
                title="Delete this webhook"
                name={new URL(webhook.url).hostname}
                submit="Delete"
                {...callbacks}
                onSubmit={() => send('DELETE', base)}
              >
                <p>No more events are sent to it, and its delivery log is deleted.</p>
              </ConfirmByName>
            )}
          </DialogButton>
        </div>
      )}
      {command.error !== null && <Failure error={command.error} />}
      <Facts>
        <Fact title="Id" value={<Id id={webhook.id} />} />
        <Fact title="Events" value={webhook.events.includes('*') ? 'all' : webhook.events.join(', ')} />
        <Fact title="Description" value={webhook.description} />
      </Facts>
      <Loaded resource={deliveries}>
        {({ data }) => (
          <>
            <Failures of={data} />
            <h2>Deliveries</h2>
            {data.length === 0 ? (
              <p class="quiet">None yet. A test is delivered within a second.</p>
            ) : (
              <Table
                caption="Deliveries"
                rows={data}
                columns={[
                  { title: 'Time, UTC', cell: ({ created_at }) => <Timestamp at={created_at} /> },
                  {
                    title: 'Event',
                    lead: 'left',
                    cell: ({ id, event_type }) => (
                      <Button
                        title={event_type}
                        label={`View ${event_type}`}
                        kind="link"
                        onClick={() => setOpened(id)}
                      />
                    ),
                  },
                  { title: 'Outcome', cell: (delivery) => <DeliveryState of={delivery} /> },
                  {
                    title: 'Attempts',
                    isFigure: true,
                    isMinor: true,
                    cell: ({ attempts }) => count(attempts),
                  },
                  {
                    title: 'Next attempt',
                    isMinor: true,
                    cell: ({ next_attempt_at }) => <RelativeTime at={next_attempt_at} never="–" />,
                  },
                  actionColumn<Delivery>(
                    'Retry',
                    ({ event_type }) => event_type,
                    () => mayManage,
                    ({ id }) => retry(id),
                  ),
                ]}
              />
            )}
          </>
        )}
      </Loaded>
      {shown !== undefined && (
        <DeliveryDialog
          of={shown}
          format={webhook.format}
          onClose={() => setOpened(null)}
          onRetry={mayManage ? () => retry(shown.id) : null}
        />
      )}
    </section>
  )
}

const reasonOf = ({ error, response_status: status }: Delivery) =>
  error ?? (status === null ? 'no answer' : `it answered ${status}`)

function DeliveryState({ of: delivery }: { readonly of: Delivery }) {
  const { status, attempts, response_status: answer } = delivery
  if (status === 'succeeded') return <span>Delivered, {answer}</span>
  if (attempts === 0) return <Tag kind="plain">queued</Tag>
  return (
    <span class="words">
      {status === 'failed' ? <Tag kind="bad">failed</Tag> : <Tag kind="high">retrying</Tag>}{' '}
      <span class="quiet">{reasonOf(delivery)}</span>
    </span>
  )
}

function Failures({ of: deliveries }: { readonly of: readonly Delivery[] }) {
  const failed = deliveries.filter(({ status, attempts }) => status !== 'succeeded' && attempts > 0)
  const causes = Object.entries(Object.groupBy(failed, reasonOf))
  if (causes.length === 0) return null
  return (
    <section aria-label="Failures">
      <h2>Failures</h2>
      <ul class="notices">
        {causes.map(([reason, some = []]) => (
          <li key={reason} class="bad">
            <b>{plural(some.length, 'delivery', 'deliveries')}</b>: {reason}, last{' '}
            <RelativeTime at={some[0]?.last_attempt_at ?? null} />
            {some[0]?.response_body && <Snippet text={some[0].response_body} what="the reply" />}
          </li>
        ))}
      </ul>
    </section>
  )
}

interface DeliveryDialogProps {
  readonly of: Delivery
  readonly format: Webhook['format']
  onClose(): void
  readonly onRetry: (() => void) | null
}

/** Shows a delivery with its payload and the last reply. The payload is read from the list of events. */
function DeliveryDialog({ of: delivery, format, onClose, onRetry }: DeliveryDialogProps) {
  const { created_at, response_status: status } = delivery
  const day = created_at.slice(0, 10)
  const events = useResource<ListOf<ActivityEvent>>(
    withQuery('/gateway/v1/events', {
      type: delivery.event_type,
      start: addDays(day, -1),
      end: day,
      limit: 1000,
    }),
  )
  return (
    <Dialog title={delivery.event_type} isWide onClose={onClose}>
      <Facts>
        <Fact title="Outcome" value={<DeliveryState of={delivery} />} />
        <Fact title="Attempts" value={count(delivery.attempts)} />
        <Fact title="Reply" value={status === null ? 'none' : `HTTP ${status}`} />
        <Fact title="Created" value={<RelativeTime at={created_at} />} />
        <Fact title="Last attempt" value={<RelativeTime at={delivery.last_attempt_at} />} />
        <Fact title="Next attempt" value={<RelativeTime at={delivery.next_attempt_at} never="none" />} />
        <Fact title="webhook-id" value={<Id id={delivery.event_id} />} />
      </Facts>
      <h2>{format === 'slack' ? 'Event' : 'Payload'}</h2>
      {format === 'slack' && <p class="quiet">Slack received a sentence about this event.</p>}
      <Loaded resource={events}>
        {({ data }) => {
          const event = data.find(({ id }) => id === delivery.event_id)
          if (event === undefined) return <p class="quiet">The event is no longer stored.</p>
          const { type, created_at: timestamp, account_id, actor, data: content } = event
          const text = JSON.stringify({ type, timestamp, account_id, actor, data: content }, null, 2)
          return <Snippet text={text} what="the payload" />
        }}
      </Loaded>
      {delivery.response_body && (
        <>
          <h2>Reply</h2>
          <Snippet text={delivery.response_body} what="the reply" />
        </>
      )}
      <div class="actions">
        {onRetry !== null && <Button title="Retry" onClick={onRetry} />}
        <Button title="Close" kind="primary" onClick={onClose} />
      </div>
    </Dialog>
  )
}

interface WebhookFormProps extends FormCallbacks<Webhook & { secret?: string }> {
  readonly edited: Webhook | null
}

function WebhookForm({ edited, ...callbacks }: WebhookFormProps) {
  const { fields, bind } = useFields(() => ({
    url: edited?.url ?? '',
    description: edited?.description ?? '',
    format: edited?.format ?? 'standard',
    events: edited?.events ?? ['key.budget.threshold', 'key.budget.exceeded'],
  }))
  const { value: events, onInput: setEvents } = bind('events')
  const isAll = events.includes('*')
  return (
    <FormDialog
      title={edited === null ? 'New webhook' : 'Edit webhook'}
      submit={edited === null ? 'Create webhook' : 'Save'}
      isReady={fields.url !== '' && events.length > 0}
      isWide
      {...callbacks}
      onSubmit={() => save('/gateway/v1/webhooks', edited, { ...fields, url: fields.url.trim() })}
    >
      <TextField label="URL" type="url" placeholder="https://…" isRequired {...bind('url')} />
      <div class="columns">
        <SelectField
          label="Format"
          hint="Slack also works for services that accept Slack's incoming webhooks."
          options={{ standard: 'JSON, signed (Standard Webhooks)', slack: 'A message for Slack' }}
          {...bind('format')}
        />
        <TextField label="Description" maxLength={200} {...bind('description')} />
      </div>
      <fieldset>
        <legend>Events</legend>
        <CheckField label="All events" value={isAll} onInput={(isOn) => setEvents(isOn ? ['*'] : [])} />
        <div class="columns checks">
          {!isAll &&
            EVENTS.map((event) => (
              <CheckField
                key={event}
                label={event}
                value={events.includes(event)}
                onInput={(isOn) =>
                  setEvents(isOn ? [...events, event] : events.filter((each) => each !== event))
                }
              />
            ))}
        </div>
      </fieldset>
    </FormDialog>
  )
}
