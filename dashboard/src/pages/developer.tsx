import type { Call, Key, ListOf } from '../api.ts'
import { useResource } from '../data.ts'
import { Link } from '../router.tsx'
import { ClientSetup } from '../ui/clients.tsx'
import { tightestOf, When } from '../ui/figures.tsx'
import { Heading, Show, Tag } from '../ui/states.tsx'
import { KeyLimits, RefusedCalls, Spend } from './key.tsx'
import { CallTable } from './requests.tsx'

/** The page of somebody who signed in with an API key: what did it spend, what is left, how is a client set up? */
export function DeveloperPage() {
  const key = useResource<Key>('/v1/keys/me', 3_000)
  const calls = useResource<ListOf<Call>>('/gateway/v1/requests?limit=10', 3_000)
  return (
    <Show resource={key} lines={6}>
      {(value) => (
        <>
          <Heading
            title={value.name}
            state={value.status !== 'usable' && <Tag kind="bad">{value.status}</Tag>}
          />
          <Stopped of={value} last={calls.value?.data[0]} />
          <p class="lead">
            Your API key <code>{`${value.prefix}…${value.last4}`}</code>, last used{' '}
            <When at={value.last_used_at} />.
          </p>
          <KeyLimits of={value} />
          <Spend asked={{ key: value.id }} by="model" shown={{}} />
          <RefusedCalls path="/gateway/v1/requests" keyId={null} />
          <h2>
            Latest calls <Link to="/requests">All</Link>
          </h2>
          <Show resource={calls}>{({ data }) => <CallTable calls={data} isOfOneKey />}</Show>
          <h2>Set up your client</h2>
          <p class="quiet">
            Replace <code>{`${value.prefix}…`}</code> with your key.
          </p>
          <ClientSetup secret={`${value.prefix}…`} />
        </>
      )}
    </Show>
  )
}

/** Why calls with the key are refused now, as far as its record and its last call say. */
function Stopped({ of: key, last }: { readonly of: Key; readonly last: Call | undefined }) {
  const cap = tightestOf(key)
  if (cap?.isSpent)
    return <p class="bad">It has spent its budget of the {cap.period}: paid calls are refused.</p>
  if (last?.state !== 'refused') return null
  if (last.code === 'credit_balance_exhausted')
    return <p class="bad">The account is out of credit: paid calls are refused.</p>
  return <p class="bad">The last call was refused: {last.code}.</p>
}
