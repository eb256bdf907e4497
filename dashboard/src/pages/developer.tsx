import type { Call, Key } from '../api.ts'
import { useResource } from '../data.ts'
import { CallTable, RefusedCalls } from '../parts/call-table.tsx'
import { RelativeTime, tightestCap } from '../parts/figures.tsx'
import { KeyLimits } from '../parts/key-limits.tsx'
import { ClientSetup } from '../parts/secret-dialog.tsx'
import { SpendCharts } from '../parts/spend-charts.tsx'
import { Heading, Loaded, Tag } from '../parts/states.tsx'
import { Link } from '../router.tsx'

/** The start page after a sign-in with an API key: spend, limits, latest calls, and the setup of clients. */
export function DeveloperPage() {
  const key = useResource('/v1/keys/me', {}, 3_000)
  const calls = useResource('/gateway/v1/requests', { limit: 10 }, 3_000)
  return (
    <Loaded resource={key} lines={6}>
      {(value) => (
        <>
          <Heading
            title={value.name}
            state={value.status !== 'usable' && <Tag kind="bad">{value.status}</Tag>}
          />
          <StopNotice of={value} last={calls.value?.data[0]} />
          <p class="lead">
            Your API key <code>{`${value.prefix}…${value.last4}`}</code>, last used{' '}
            <RelativeTime at={value.last_used_at} />.
          </p>
          <KeyLimits of={value} />
          <SpendCharts asked={{ key: value.id }} by="model" shown={{}} />
          <RefusedCalls />
          <h2>
            Latest calls <Link to="/requests">All</Link>
          </h2>
          <Loaded resource={calls}>{({ data }) => <CallTable calls={data} isOfOneKey />}</Loaded>
          <h2>Set up your client</h2>
          <p class="quiet">
            Use your key instead of <code>{`${value.prefix}…`}</code>.
          </p>
          <ClientSetup secret={`${value.prefix}…`} />
        </>
      )}
    </Loaded>
  )
}

/** Why calls with the key are refused now, judged by its record and its last call. */
function StopNotice({ of: key, last }: { readonly of: Key; readonly last: Call | undefined }) {
  const cap = tightestCap(key)
  if (cap?.isSpent)
    return <p class="bad">The key has spent its budget of the {cap.period}. Paid calls are refused.</p>
  if (last?.state !== 'refused') return null
  if (last.code === 'credit_balance_exhausted')
    return <p class="bad">The account has no credit left. Paid calls are refused.</p>
  return <p class="bad">The last call was refused: {last.code}.</p>
}
