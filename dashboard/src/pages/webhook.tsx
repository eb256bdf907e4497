import { useState } from 'preact/hooks'
import { type Delivery, send, type Webhook } from '../api.ts'
import { useCommand, usePermissions, useResource } from '../data.ts'
import { count, plural } from '../format.ts'
import { Button } from '../parts/button.tsx'
import { Id, Snippet } from '../parts/copy.tsx'
import { DangerButton, Dialog, DialogButton } from '../parts/dialog.tsx'
import { Fact, Facts, RelativeTime, Timestamp } from '../parts/figures.tsx'
import { Failure, Loaded, Tag } from '../parts/states.tsx'
import { actionColumn, Table, timeColumn } from '../parts/table.tsx'
import { setQuery } from '../router.tsx'
import { WebhookForm } from './webhook-form.tsx'

interface OneWebhookProps {
  readonly of: Webhook
  onChanged(): void
  onSecret(secret: string): void
}

export function OneWebhook({ of: webhook, onChanged, onSecret }: OneWebhookProps) {
  const { mayManage } = usePermissions()
  const [opened, setOpened] = useState<string | null>(null)
  const { id } = webhook
  const deliveries = useResource('/gateway/v1/webhooks/{id}/deliveries', { id, limit: 50 }, 3_000)
  const command = useCommand()
  const run = (action: () => Promise<unknown>) =>
    void command.run(async () => {
      await action()
      onChanged()
      deliveries.refresh()
    })
  const retry = (delivery_id: string) =>
    run(() => send('POST /gateway/v1/webhooks/{id}/deliveries/{delivery_id}/redeliver', { id, delivery_id }))
  const rotateSecret = async () =>
    onSecret((await send('POST /gateway/v1/webhooks/{id}/rotate-secret', { id })).secret ?? '')
  const setEnabled = (enabled: boolean) =>
    run(() => send('PATCH /gateway/v1/webhooks/{id}', { id }, { enabled }))
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
            onClick={() => run(() => send('POST /gateway/v1/webhooks/{id}/test', { id }))}
          />
          <DialogButton title="Edit" onDone={onChanged}>
            {(callbacks) => <WebhookForm edited={webhook} {...callbacks} />}
          </DialogButton>
          <Button
            title={webhook.enabled ? 'Turn off' : 'Turn on'}
            isDisabled={command.isBusy}
            onClick={() => setEnabled(!webhook.enabled)}
          />
          <Button title="New secret" isDisabled={command.isBusy} onClick={() => run(rotateSecret)} />
          <DangerButton
            verb="Delete"
            noun="this webhook"
            name={new URL(webhook.url).hostname}
            run={() => send('DELETE /gateway/v1/webhooks/{id}', { id })}
            onDone={leave}
          >
            No more events are sent to it, and its delivery log is deleted.
          </DangerButton>
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
                  timeColumn('Next attempt', nextAttemptOf, { isMinor: true, never: '–' }),
                  actionColumn<Delivery>(
                    ({ id, event_type: type }) =>
                      mayManage && (
                        <Button title="Retry" label={`Retry ${type}`} kind="link" onClick={() => retry(id)} />
                      ),
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

/** An attempt that is due is made now. */
const nextAttemptOf = ({ next_attempt_at: at }: Delivery) =>
  at !== null && Date.parse(at) < Date.now() ? new Date().toISOString() : at

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

export const reasonOf = ({ error, response_status: status }: Delivery) =>
  error ?? (status === null ? 'no answer' : `it answered ${status}`)

export function DeliveryState({ of: delivery }: { readonly of: Delivery }) {
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

interface DeliveryDialogProps {
  readonly of: Delivery
  readonly format: Webhook['format']
  onClose(): void
  readonly onRetry: (() => void) | null
}

/** Shows a delivery with its payload and the last reply. */
export function DeliveryDialog({ of: delivery, format, onClose, onRetry }: DeliveryDialogProps) {
  const { created_at, response_status: status } = delivery
  const event = useResource('/gateway/v1/events/{id}', { id: delivery.event_id })
  return (
    <Dialog title={delivery.event_type} isWide onClose={onClose}>
      <Facts>
        <Fact title="Outcome" value={<DeliveryState of={delivery} />} />
        <Fact title="Attempts" value={count(delivery.attempts)} />
        <Fact title="Reply" value={status === null ? 'none' : `HTTP ${status}`} />
        <Fact title="Created" value={<RelativeTime at={created_at} />} />
        <Fact title="Last attempt" value={<RelativeTime at={delivery.last_attempt_at} />} />
        <Fact title="Next attempt" value={<RelativeTime at={nextAttemptOf(delivery)} never="none" />} />
        <Fact title="webhook-id" value={<Id id={delivery.event_id} />} />
      </Facts>
      <h2>{format === 'slack' ? 'Event' : 'Payload'}</h2>
      {format === 'slack' && <p class="quiet">Slack received a sentence about this event.</p>}
      {event.error?.status === 404 ? (
        <p class="quiet">The event is no longer stored.</p>
      ) : (
        <Loaded resource={event}>
          {({ type, created_at: timestamp, account_id, actor, data }) => (
            <Snippet
              text={JSON.stringify({ type, timestamp, account_id, actor, data }, null, 2)}
              what="the payload"
            />
          )}
        </Loaded>
      )}
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
