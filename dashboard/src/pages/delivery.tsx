import type { ActivityEvent, Delivery, Webhook } from '../api.ts'
import { useResource } from '../data.ts'
import { count } from '../format.ts'
import { Button } from '../parts/button.tsx'
import { Id, Snippet } from '../parts/copy.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Fact, Facts } from '../parts/facts.tsx'
import { RelativeTime } from '../parts/figures.tsx'
import { Loaded, Tag } from '../parts/states.tsx'

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
  const event = useResource<ActivityEvent>(`/gateway/v1/events/${delivery.event_id}`)
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
