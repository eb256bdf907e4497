import type { ComponentChildren } from 'preact'
import type { ListOf, Webhook } from '../api.ts'
import type { Resource } from '../data.ts'
import { capitalize } from '../format.ts'
import { Link } from '../router.tsx'
import { Empty, Loaded, Tag } from './states.tsx'
import { nameColumn, shortList, Table, timeColumn } from './table.tsx'

const DISABLED: Readonly<Record<string, string>> = {
  gone: 'it answered 410 Gone',
  failing: 'it failed for five days',
  manual: 'turned off',
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
              timeColumn<Webhook>('Last attempt', ({ last_delivery_at }) => last_delivery_at),
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
