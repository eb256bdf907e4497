import { type Call, type Key, type ListOf, send } from '../api.ts'
import { useOwner, usePermissions, useResource } from '../data.ts'
import { CallTable } from '../parts/call-table.tsx'
import { JsonDetails } from '../parts/copy.tsx'
import { ConfirmByName, DialogButton } from '../parts/dialog.tsx'
import { RelativeTime } from '../parts/figures.tsx'
import { KeyLimits } from '../parts/key-limits.tsx'
import { RefusedCalls } from '../parts/refused-calls.tsx'
import { SpendCharts } from '../parts/spend-charts.tsx'
import { Heading, Loaded, Tag } from '../parts/states.tsx'
import { Link, navigate, withQuery } from '../router.tsx'
import { BudgetHistory } from './budget-history.tsx'
import { KeyForm } from './key-form.tsx'
import { RotateForm } from './rotate-form.tsx'
import { Rotation } from './rotation.tsx'

const KEYS = { to: '/keys', title: 'Keys' }

/** Shows whether a key can be revoked: its last use and client, and the steps of a rotation. */
export function KeyPage({ id }: { readonly id: string }) {
  const key = useResource<Key>(`/v1/keys/${id}`, 3_000)
  const calls = useResource<ListOf<Call>>(`/v1/keys/${id}/requests?limit=10`, 3_000)
  const { mayManage } = usePermissions()
  useOwner(key.value?.account_id)
  return (
    <Loaded resource={key} lines={6} of={KEYS}>
      {(value) => {
        const isUsable = value.status === 'usable'
        const mayChange = isUsable && mayManage
        const last = calls.value?.data[0]
        return (
          <>
            <Heading of={KEYS} title={value.name} state={!isUsable && <Tag kind="bad">{value.status}</Tag>}>
              {mayChange && <KeyActions of={value} onDone={key.refresh} />}
            </Heading>
            <p class="lead">
              {value.last_used_at === null ? (
                'Never used.'
              ) : (
                <>
                  Last used{' '}
                  <b>
                    <RelativeTime at={value.last_used_at} />
                  </b>
                  {last !== undefined && <LastUse of={last} />}
                </>
              )}
            </p>
            <Rotation of={value} revoke={mayManage && <Revoke of={value} onDone={key.refresh} />} />
            <KeyLimits of={value} />
            <SpendCharts asked={{ key: id }} by="model" shown={{ key: id }} />
            <RefusedCalls path={`/v1/keys/${id}/requests`} keyId={id} />
            <h2>
              Latest calls <Link to={withQuery('/requests', { key: id })}>All</Link>
            </h2>
            <Loaded resource={calls}>{({ data }) => <CallTable calls={data} isOfOneKey />}</Loaded>
            <BudgetHistory of={value} />
            <JsonDetails of={value} />
          </>
        )
      }}
    </Loaded>
  )
}

interface ActionProps {
  readonly of: Key
  onDone(): void
}

function KeyActions({ of: key, onDone }: ActionProps) {
  function showRotation({ id: successor }: Key): void {
    onDone()
    navigate(withQuery(`/keys/${key.id}`, { successor }))
  }
  return (
    <>
      <DialogButton title="Change limits" onDone={onDone}>
        {(callbacks) => <KeyForm edited={key} {...callbacks} />}
      </DialogButton>
      <DialogButton title="Rotate" onDone={showRotation}>
        {(callbacks) => <RotateForm of={key} {...callbacks} />}
      </DialogButton>
      <Revoke of={key} onDone={onDone} title="Revoke" />
    </>
  )
}

export function Revoke({ of: { id, name }, onDone, title }: ActionProps & { readonly title?: string }) {
  return (
    <DialogButton title={title ?? 'Revoke the old key'} kind="danger" onDone={onDone}>
      {(callbacks) => (
        <ConfirmByName
          title="Revoke this key"
          name={name}
          submit="Revoke"
          {...callbacks}
          onSubmit={() => send('POST', `/v1/keys/${id}/revoke`)}
        >
          <p>Every new call with it gets 401, on all nodes. Running streams finish. This cannot be undone.</p>
        </ConfirmByName>
      )}
    </DialogButton>
  )
}

const LastUse = ({ of: { user_agent, client_ip, id } }: { readonly of: Call }) => (
  <>
    {' '}
    by <b class="name">{user_agent ?? 'an unknown client'}</b>
    {client_ip !== null && (
      <>
        {' '}
        from <code>{client_ip}</code>
      </>
    )}
    . <Link to={`/requests/${id}`}>View request</Link>
  </>
)
