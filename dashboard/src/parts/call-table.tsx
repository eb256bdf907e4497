import type { Call } from '../api.ts'
import { useResource } from '../data.ts'
import { CALL_DECIMALS, count, duration, shortCount } from '../format.ts'
import { Link, withQuery } from '../router.tsx'
import { Figure, KeyLink, TimeBar, Timestamp } from './figures.tsx'
import { Empty, Tag } from './states.tsx'
import { type Column, Table } from './table.tsx'

interface CallTableProps {
  readonly calls: readonly Call[]
  readonly isOfOneKey?: boolean
  readonly caption?: string
  readonly after?: string | null
  readonly next?: string | null
}

export function CallTable({
  calls,
  isOfOneKey = false,
  caption = 'Calls',
  after = null,
  next = null,
}: CallTableProps) {
  if (calls.length === 0)
    return <Empty title="No call yet." words="Calls appear here as soon as they start." />
  const columns: Column<Call>[] = [
    {
      title: 'Time, UTC',
      cell: ({ id, started_at }) => (
        <Link to={`/requests/${id}`} class="opens">
          <Timestamp at={started_at} />
        </Link>
      ),
    },
    ...(isOfOneKey
      ? []
      : [
          {
            title: 'Key',
            isWide: true,
            lead: 'left' as const,
            cell: ({ key_id, key_name }: Call) => <KeyLink id={key_id} name={key_name} />,
          },
        ]),
    {
      title: 'Model',
      ...(isOfOneKey ? { lead: 'left' as const } : {}),
      cell: ({ model, model_served, path }) => model_served || model || <code class="quiet">{path}</code>,
    },
    { title: 'Outcome', cell: (call) => <Outcome of={call} /> },
    {
      title: 'Tokens',
      isFigure: true,
      isMinor: true,
      cell: ({ state, usage }) => <TokensOf usage={state === 'refused' ? null : usage} />,
    },
    {
      title: 'Cost, USD',
      isFigure: true,
      lead: 'right',
      cell: (call) =>
        call.state === 'settled' ? (
          <Figure usd={costOf(call)} decimals={CALL_DECIMALS} />
        ) : (
          <span class="quiet">–</span>
        ),
    },
    {
      title: 'Duration',
      isFigure: true,
      isMinor: true,
      cell: (call) =>
        call.upstream_ms === null ? (
          <span class="quiet">–</span>
        ) : (
          <>
            {duration(call.upstream_ms + (call.overhead_ms ?? 0))} <TimeBar of={call} />
          </>
        ),
    },
  ]
  return (
    <Table
      caption={caption}
      after={after}
      next={next}
      columns={columns}
      rows={calls}
      rowClass={({ state }) => (state === 'refused' ? 'dead' : undefined)}
    />
  )
}

/** The cost of a call. The cost of a batch is the sum of its parts. */
export const costOf = ({ cost_usd, children_cost_usd }: Call) => (cost_usd ?? 0) + (children_cost_usd ?? 0)

function TokensOf({ usage }: Pick<Call, 'usage'>) {
  if (usage === null) return <span class="quiet">–</span>
  const { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens } = usage
  const cache = cache_read_tokens + cache_write_tokens
  return (
    <span
      title={`${count(input_tokens)} input, ${count(cache_read_tokens)} read from the cache, ${count(cache_write_tokens)} written to it, ${count(output_tokens)} output`}
    >
      {shortCount(input_tokens)}
      {cache > 0 && <span class="quiet least"> + {shortCount(cache)} cached</span>} →{' '}
      {shortCount(output_tokens)}
    </span>
  )
}

const STATE_WORDS: Partial<Record<Call['state'], string>> = {
  in_flight: 'in flight',
  waiting: 'waiting for budget',
  deferred: 'cost pending',
  released: 'nothing billed',
}

export function Outcome({ of: call }: { readonly of: Call }) {
  const { state, status, code, unpriced, estimated, overrun, credited, streamed, socket_id, session_id } =
    call
  if (state === 'refused') return <Tag kind="bad">{code === null ? 'refused' : <code>{code}</code>}</Tag>
  const isBad = status !== null && status >= 400
  return (
    <>
      {status !== null && <span class={isBad ? 'bad' : undefined}>{status}</span>}{' '}
      {state !== 'settled' && (
        <Tag kind={state === 'interrupted' ? 'bad' : 'plain'}>{STATE_WORDS[state] ?? state}</Tag>
      )}
      {unpriced && <Tag kind="high">unpriced</Tag>}
      {estimated && <Tag kind="plain">estimated</Tag>}
      {overrun && <Tag kind="high">over its reservation</Tag>}
      {credited && <Tag kind="plain">credited back</Tag>}
      {streamed && <span class="quiet least"> stream</span>}{' '}
      {socket_id !== null && <Link to={`/requests?socket=${socket_id}`}>socket</Link>}
      {session_id !== null && <Link to={withQuery('/requests', { session: session_id })}>session</Link>}
    </>
  )
}

/** The list of all calls, or of the calls of one key. */
export const callsPath = (key: string | null | undefined) =>
  key == null ? '/gateway/v1/requests' : '/v1/keys/{id}/requests'

interface RefusedCallsProps {
  /** Only calls of this key or person. */
  readonly filter?: { readonly key?: string; readonly person?: string }
}

export function RefusedCalls({ filter = {} }: RefusedCallsProps) {
  const { key: id, person } = filter
  const { value } = useResource(callsPath(id), { id, person, state: 'refused', limit: 5 }, 10_000)
  if (value === null || value.data.length === 0) return null
  return (
    <>
      <h2>
        Refused calls <Link to={withQuery('/requests', { ...filter, state: 'refused' })}>All</Link>
      </h2>
      <CallTable calls={value.data} isOfOneKey caption="Refused calls" />
    </>
  )
}
