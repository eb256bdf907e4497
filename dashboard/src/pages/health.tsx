import { type Audit, type Health, send } from '../api.ts'
import { useCommand, useResource } from '../data.ts'
import { bytes, count, percent } from '../format.ts'
import { Link } from '../router.tsx'
import { Fact, Facts } from '../ui/facts.tsx'
import { When } from '../ui/figures.tsx'
import { Failure, Show, Tag } from '../ui/states.tsx'
import { Table } from '../ui/table.tsx'

/** Is the gateway sound? The node that answers, the others, the store, and whether the books add up. */
export function HealthPage() {
  const health = useResource<Health>('/gateway/v1/health', 3_000)
  return (
    <>
      <header class="page">
        <h1>Health</h1>
      </header>
      <Show resource={health} lines={8}>
        {(value) => (
          <>
            <p class="lead">
              {value.status === 'ok' && value.store.writable ? (
                'It serves, and the store can be written.'
              ) : (
                <b class="bad">
                  {value.store.writable ? 'It does not serve.' : 'The store cannot be written.'}
                </b>
              )}
            </p>
            <Facts>
              <Fact title="Version">
                Tollgate {value.version}, Node.js {value.node_version}
              </Fact>
              <Fact title="This node">
                <code>{value.node}</code>, started <When at={value.started_at} />, {bytes(value.memory_bytes)}{' '}
                of memory
              </Fact>
              <Fact title="Calls here">
                <Link to="/requests?state=in_flight">{count(value.calls_in_flight)} in flight</Link>,{' '}
                <Link to="/requests?state=waiting">{count(value.calls_waiting)} waiting</Link>,{' '}
                <Link to="/requests?state=deferred">{count(value.deferred_objects)} to be billed later</Link>
              </Fact>
              <Fact title="Store">
                {value.store.kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'}, {bytes(value.store.size_bytes)},{' '}
                <code>{value.store.place}</code>
                {value.store.settlements_waiting > 0 && (
                  <Tag kind="look">{count(value.store.settlements_waiting)} settlements wait for it</Tag>
                )}
              </Fact>
            </Facts>
            {value.nodes !== null && <Nodes nodes={value.nodes} />}
            <h2>Audit</h2>
            <AuditOf audit={value.audit} onStarted={health.refresh} />
            <h2>Configuration</h2>
            <Configuration of={value.configuration} />
          </>
        )}
      </Show>
    </>
  )
}

const isSet = (value: unknown) =>
  value !== null && value !== '' && !(Array.isArray(value) && value.length === 0)

/** The configuration without secrets. Settings that are not set are named below, so that the reader sees what exists. */
function Configuration({ of: settings }: { readonly of: Health['configuration'] }) {
  return (
    <div class="measure">
      <Table
        caption="Configuration"
        rows={settings.filter(({ value }) => isSet(value))}
        keyOf={({ name }) => name}
        columns={[
          { title: 'Setting', lead: 'left', cell: ({ name }) => <code>{name}</code> },
          {
            title: 'Value',
            isWide: true,
            lead: 'right',
            cell: ({ value }) => (Array.isArray(value) ? value.join(', ') : String(value)),
          },
        ]}
      />
      <p class="quiet unset-settings">
        Not set:{' '}
        {settings
          .filter(({ value }) => !isSet(value))
          .map(({ name }) => name)
          .join(', ')}
      </p>
    </div>
  )
}

function Nodes({ nodes }: { readonly nodes: NonNullable<Health['nodes']> }) {
  return (
    <>
      <h2>Nodes</h2>
      <Table
        caption="Nodes"
        rows={nodes}
        keyOf={({ id }) => id}
        rowClass={({ state }) => (state === 'gone' ? 'dead' : undefined)}
        columns={[
          { title: 'Name', isWide: true, cell: ({ name }) => <code>{name}</code> },
          { title: 'State', cell: ({ state }) => state },
          { title: 'Last seen', cell: ({ seen_at }) => <When at={seen_at} /> },
          { title: 'Started', isMinor: true, cell: ({ started_at }) => <When at={started_at} /> },
        ]}
      />
    </>
  )
}

/** The audit derives every sum and price again from the records. It runs beside the calls. */
function AuditOf({ audit, onStarted }: { readonly audit: Audit; onStarted(): void }) {
  const command = useCommand()
  const isRunning = audit.state === 'running'
  return (
    <>
      <p role="status">
        <AuditWords audit={audit} />
      </p>
      {isRunning && (
        <progress value={audit.done} max={Math.max(1, audit.total)} aria-label="Progress of the audit" />
      )}
      {command.error !== null && <Failure error={command.error} />}
      <p>
        <button
          type="button"
          disabled={isRunning || command.isBusy}
          onClick={() =>
            void command.run(async () => {
              await send('POST', '/gateway/v1/audit')
              onStarted()
            })
          }
        >
          Audit the books now
        </button>
      </p>
    </>
  )
}

function AuditWords({ audit }: { readonly audit: Audit }) {
  const { state, balanced, difference, counts, error } = audit
  if (state === 'never')
    return <>None was begun from here. It derives every sum and every price again from the records.</>
  if (state === 'running') return <>Running, {percent(audit.done, audit.total)} of the records.</>
  if (state === 'failed') return <b class="bad">It could not be finished: {error}</b>
  if (balanced !== true)
    return (
      <b class="bad">
        {difference?.what} of {difference?.where} is {difference?.stored}, and by the records{' '}
        {difference?.derived}.
      </b>
    )
  return (
    <>
      The books balance: {count(counts?.['calls'] ?? 0)} calls, {count(counts?.['keys'] ?? 0)} keys,{' '}
      {count(counts?.['credits'] ?? 0)} credits, <When at={audit.ended_at} />.
    </>
  )
}
