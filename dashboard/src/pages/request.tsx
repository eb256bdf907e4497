import { useState } from 'preact/hooks'
import type { LoggedBodyObject } from '../../../src/api/request.ts'
import { ERRORS, type ErrorCode } from '../../../src/kernel/errors.ts'
import { type Account, type Bill, type Call, type Key, type ListOf, send } from '../api.ts'
import { OWN_ACCOUNT, type OwnAccount, usePermissions, useResource } from '../data.ts'
import { bytes, count, duration, exactMoney, exactTime, fractionInPercent, money, plural } from '../format.ts'
import { Link, withQuery } from '../router.tsx'
import { DialogButton, type FormCallbacks, FormDialog } from '../ui/dialog.tsx'
import { Fact, Facts } from '../ui/facts.tsx'
import { TextField } from '../ui/fields.tsx'
import { Balance, Budget, Id, JsonDetails, KeyLink, RelativeTime, Snippet, TimeBar } from '../ui/figures.tsx'
import { Heading, Loaded } from '../ui/states.tsx'
import { Table } from '../ui/table.tsx'
import { costOf, Outcome } from './requests.tsx'

type BilledCall = Call & { readonly bill?: Bill | null }

const REQUESTS = { to: '/requests', title: 'Requests' }
const OPEN_STATES: readonly string[] = ['waiting', 'in_flight', 'deferred']

export function RequestPage({ id }: { readonly id: string }) {
  const [isOpen, setOpen] = useState(true)
  const { isOperator, isDeveloper } = usePermissions()
  const call = useResource<BilledCall>(`/gateway/v1/requests/${id}?expand=bill`, isOpen ? 2_000 : null)
  const state = call.value?.state
  // The API answers for a call in flight when it has settled. Until then, the list of calls in flight has the record.
  const inFlight = useResource<ListOf<BilledCall>>(
    call.value === null ? '/gateway/v1/requests?state=in_flight&limit=1000' : null,
  )
  const value = call.value ?? inFlight.value?.data.find((each) => each.id === id) ?? null
  if (isOpen && state !== undefined && !OPEN_STATES.includes(state)) setOpen(false)
  return (
    <Loaded resource={{ ...call, value, isLoading: value === null }} lines={8} of={REQUESTS}>
      {(value) => (
        <>
          <Heading
            of={REQUESTS}
            name={value.id}
            title={value.model_served ?? value.model ?? value.path}
            state={<Outcome of={value} />}
          >
            {isOperator && value.state === 'settled' && (value.cost_usd ?? 0) > 0 && !value.credited && (
              <DialogButton title="Credit back" onDone={call.refresh}>
                {(callbacks) => <CreditBack of={value} {...callbacks} />}
              </DialogButton>
            )}
          </Heading>
          <p class="lead">
            <Summary of={value} />
          </p>
          {(value.state === 'waiting' || value.state === 'in_flight') && <Ceilings keyId={value.key_id} />}
          {value.state !== 'refused' && (
            <div class="beside">
              <div>
                {value.bill != null && value.children === undefined && <BillTable bill={value.bill} />}
              </div>
              <Timeline of={value} />
            </div>
          )}
          <h2>Call</h2>
          <CallFacts of={value} />
          {!isDeveloper && <Bodies id={id} />}
          <JsonDetails of={{ ...value, bill: undefined }} />
        </>
      )}
    </Loaded>
  )
}

/** The first sentence of the meaning of an error. */
const meaningOf = (code: string | null) =>
  /^.*?\.(?= |$)/.exec(ERRORS[code as ErrorCode]?.meaning ?? '')?.[0].replaceAll('`', '')

/** The child records of a batch start with it, so the log is read for one millisecond only. */
const partsOf = ({ id, started_at: start }: Call) =>
  withQuery('/requests', { parent_id: id, start, end: new Date(Date.parse(start) + 1).toISOString() })

function Summary({ of: call }: { readonly of: Call }) {
  const { state, code, children } = call
  const outcome = {
    settled: (
      <>
        Cost <b>{exactMoney(costOf(call))}</b>
        {children !== undefined && (
          <>
            , as the sum of <Link to={partsOf(call)}>{plural(children, 'part')}</Link>
          </>
        )}
        .
      </>
    ),
    refused: (
      <>
        Refused with <code>{code}</code>: nothing was sent upstream, and nothing is billed. {meaningOf(code)}{' '}
        {ERRORS[code as ErrorCode]?.retry === 'safe' && 'You can send it again.'}
      </>
    ),
    released: 'Nothing was billed: the endpoint is free, or upstream answered with an error.',
    interrupted: `The gateway stopped during this call. Nothing was billed, and up to ${exactMoney(call.lost_list_cost_usd)} was lost.`,
    deferred: 'The cost is pending until upstream reports the usage.',
    waiting: 'The call waits until earlier calls release their reservations.',
    in_flight: 'The call is in flight.',
  }[state]
  return (
    <>
      {outcome} Requested by <KeyLink id={call.key_id} name={call.key_name} />,{' '}
      <RelativeTime at={call.started_at} />.
    </>
  )
}

/** The limits from which a call has reserved, or for which it waits: budgets of key and account, and credit. */
function Ceilings({ keyId }: { readonly keyId: string }) {
  const { isDeveloper } = usePermissions()
  const { value: key } = useResource<Key>(isDeveloper ? '/v1/keys/me' : `/v1/keys/${keyId}`, 2_000)
  const { value: account } = useResource<OwnAccount>(isDeveloper ? null : OWN_ACCOUNT, 2_000)
  const isEnforced = account?.credit_enforced === true
  return (
    <Facts>
      <Fact title="Budget of the key" value={key && <Budget of={key} />} />
      <Fact title="Budget of the account" value={account && <Budget of={account} />} />
      <Fact title="Credit left" value={isEnforced && <Balance usd={account.balance_usd} />} />
    </Facts>
  )
}

function BillTable({ bill }: { readonly bill: Bill }) {
  const { isDeveloper } = usePermissions()
  const { lines, discount_usd: discount, rounding_usd: rounding } = bill
  if (lines.length === 0)
    return (
      <p class="quiet">
        {bill.note}{' '}
        {bill.held_usd > 0 && bill.cost_usd === null && (
          <>
            <b>{money(bill.held_usd)}</b> is reserved. {bill.held_because}
          </>
        )}
      </p>
    )
  const models = [...new Set(lines.map(({ model }) => model))]
  const fractions = [...new Set(lines.map((line) => line.discount))]
  const sum = (id: string, usd: number): BillRow => ({ id, title: id, usd })
  const rows: readonly BillRow[] = [
    ...lines.map((line) => ({
      id: `${line.model} ${line.label}`,
      title: line.label,
      details: [...(models.length > 1 ? [line.model] : []), ...line.modifiers].join(', '),
      quantity: count(line.quantity),
      rate: `× ${exactMoney(line.rate_usd)} ${RATE_UNITS[line.rate_per] ?? `per ${count(line.rate_per)}`}`,
      usd: line.amount_usd,
    })),
    ...(rounding === 0 ? [] : [sum('rounding, once', rounding)]),
    ...(discount === null || discount === 0
      ? []
      : [
          sum('at list price', bill.list_cost_usd ?? 0),
          sum(`discount of ${fractions.map(fractionInPercent).join(' and ')}`, -discount),
        ]),
  ]
  // The same number of decimals in all rows aligns the decimal points.
  const decimals = Math.max(...[bill.cost_usd ?? 0, ...rows.map(({ usd }) => usd)].map(lineDecimals))
  return (
    <>
      <h2>Bill</h2>
      <Table
        caption="Bill"
        kind="bill"
        rows={rows}
        rowClass={({ rate }) => (rate === undefined ? undefined : 'line')}
        columns={[
          {
            title: 'Used',
            cell: ({ title, details }) => (
              <>
                {title} <span class="quiet">{details}</span>
              </>
            ),
          },
          { title: 'Quantity', isFigure: true, cell: ({ quantity }) => quantity },
          { title: 'Rate', isFigure: true, cell: ({ rate }) => <span class="quiet">{rate}</span> },
          { title: 'Amount', isFigure: true, cell: ({ usd }) => money(usd, decimals) },
        ]}
        total={['Total', sum('Total', bill.cost_usd ?? 0)]}
      />
      <p class="quiet">
        Prices of {isDeveloper ? bill.price_version : <Link to="/prices">{bill.price_version}</Link>}
        {models.length === 1 && ` for ${models[0]}`}.{' '}
        {bill.held_usd > 0 && `We reserved ${money(bill.held_usd)} while it ran. ${bill.held_because}`}
      </p>
    </>
  )
}

interface BillRow {
  readonly id: string
  readonly title: string
  readonly details?: string
  readonly quantity?: string
  readonly rate?: string
  readonly usd: number
}

const RATE_UNITS: Readonly<Record<number, string>> = { 1: 'each', 1000000: 'per M' }

/** The decimals of an amount, at least two. A line is not rounded, so it may have more decimals than the total. */
function lineDecimals(usd: number): number {
  const text = Math.abs(usd).toFixed(15).replace(/0+$/, '')
  return Math.max(2, text.length - text.indexOf('.') - 1)
}

interface Moment {
  readonly title: string
  readonly at?: string | null
  readonly note?: string
  readonly isUpstream?: boolean
}

const ENDINGS: Partial<Record<Call['state'], string>> = {
  settled: 'Settled',
  released: 'Released, nothing billed',
  interrupted: 'Interrupted',
}

function momentsOf(call: BilledCall): readonly Moment[] {
  const { state, started_at: at, ended_at, upstream_ms: upstream, overhead_ms: overhead } = call
  if (state === 'waiting') return [{ title: 'Waiting for a budget or credit', at }]
  const held = call.bill?.held_usd ?? 0
  const unused = held - costOf(call)
  const times = `${duration(upstream ?? 0)} upstream, ${duration(overhead ?? 0)} in the gateway`
  const ending = ENDINGS[state]
  return [
    { title: 'Admitted', at, note: `${bytes(call.bytes_in)} sent by the client` },
    ...(held > 0 ? [{ title: `Reserved ${money(held)}` }] : []),
    ...(upstream === null
      ? []
      : [
          {
            title: call.status === null ? 'Sent upstream' : `Upstream answered ${call.status}`,
            note: times,
            isUpstream: true,
          },
        ]),
    ending === undefined
      ? { title: state === 'deferred' ? 'Waiting for the cost' : 'In flight' }
      : {
          title: ending,
          at: ended_at,
          ...(state === 'settled' && held > 0 && unused > 0 ? { note: `${money(unused)} released` } : {}),
        },
    ...(call.credited ? [{ title: 'Credited back' }] : []),
  ]
}

function Timeline({ of: call }: { readonly of: BilledCall }) {
  return (
    <section aria-label="Timeline">
      <h2>Timeline</h2>
      <ol class="timeline">
        {momentsOf(call).map(({ title, at, note, isUpstream }) => (
          <li key={title}>
            {title}
            {at != null && (
              <time dateTime={at} title={exactTime(at)}>
                {exactTime(at).slice(11)}
              </time>
            )}
            {isUpstream && <TimeBar of={call} />}
            {note !== undefined && <span class="quiet">{note}</span>}
          </li>
        ))}
      </ol>
    </section>
  )
}

function CallFacts({ of: call }: { readonly of: Call }) {
  const { isOperator } = usePermissions()
  const path = `/gateway/v1/accounts/${call.account_id}`
  const { value: account } = useResource<Account>(isOperator ? path : null)
  const { parent_id: parent, socket_id: socket } = call
  const usage = call.state === 'refused' ? null : call.usage
  const isSame = call.model === call.model_served
  return (
    <Facts>
      <Fact title="Request id" value={<Id id={call.id} />} />
      <Fact title="Account" value={account && <Link to={`/accounts/${account.id}`}>{account.name}</Link>} />
      <Fact title="Upstream’s id" value={call.upstream_request_id && <Id id={call.upstream_request_id} />} />
      <Fact title="Created upstream" value={call.object_id && <Id id={call.object_id} />} />
      <Fact title="Part of" value={parent && <Link to={`/requests/${parent}`}>the batch</Link>} />
      <Fact title="Socket" value={socket && <Link to={`/requests?socket=${socket}`}>{socket}</Link>} />
      <Fact title="Endpoint" value={`${call.method} ${call.path}`} />
      <Fact title="Requested" value={isSame ? null : call.model} />
      <Fact
        title="Tokens"
        value={
          usage &&
          `${count(usage.input_tokens)} input · ${count(usage.cache_read_tokens)} cache read · ${count(usage.cache_write_tokens)} cache write · ${count(usage.output_tokens)} output`
        }
      />
      <Fact title="Served" value={isSame ? null : call.model_served} />
      <Fact title="Stop reason" value={call.stop_reason} />
      <Fact title="Client" value={[call.user_agent, call.client_ip].filter(Boolean).join(' · ') || null} />
      <Fact
        title="Size"
        value={call.state !== 'refused' && `${bytes(call.bytes_in)} sent, ${bytes(call.bytes_out)} received`}
      />
      <Fact title="Balance after" value={call.balance_usd !== null && <Balance usd={call.balance_usd} />} />
    </Facts>
  )
}

/** The logged bodies of a call. They are read when the section is opened. */
function Bodies({ id }: { readonly id: string }) {
  const [isOpen, setOpen] = useState(false)
  const bodies = useResource<{ request: LoggedBodyObject | null; response: LoggedBodyObject | null }>(
    isOpen ? `/gateway/v1/requests/${id}/bodies` : null,
  )
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Bodies</summary>
      {bodies.error?.status === 404 ? (
        <p class="quiet">Logging was off for the key, or the bodies have been deleted.</p>
      ) : (
        <Loaded resource={bodies}>
          {(value) => (
            <>
              <Body title="Request" of={value.request} />
              <Body title="Reply" of={value.response} />
            </>
          )}
        </Loaded>
      )}
    </details>
  )
}

function Body({ title, of: body }: { readonly title: string; readonly of: LoggedBodyObject | null }) {
  return (
    <>
      <h2>
        {title} {body?.truncated && <span class="quiet">the beginning of {bytes(body.length_bytes)}</span>}
      </h2>
      {body === null ? (
        <p class="quiet">There was no body.</p>
      ) : (
        <Snippet text={formatBody(body)} what={title.toLowerCase()} />
      )}
    </>
  )
}

function formatBody({ content, encoding }: LoggedBodyObject): string {
  if (encoding === 'base64') return `base64: ${content}`
  try {
    return JSON.stringify(JSON.parse(content), null, 2)
  } catch {
    return content
  }
}

function CreditBack({ of: call, ...callbacks }: FormCallbacks<unknown> & { readonly of: Call }) {
  const [reason, setReason] = useState('')
  return (
    <FormDialog
      title={`Credit back ${exactMoney(call.cost_usd ?? 0)}`}
      submit="Credit back"
      isReady={reason.trim() !== ''}
      {...callbacks}
      onSubmit={() => send('POST', '/gateway/v1/credits', { request_ids: [call.id], reason })}
    >
      <p>The cost of the call is added to the credit, once. The recorded cost does not change.</p>
      <TextField label="Reason" isRequired value={reason} onInput={setReason} />
    </FormDialog>
  )
}
