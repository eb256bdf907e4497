import { useState } from 'preact/hooks'
import type { LoggedBodyObject } from '../../../src/api/request.ts'
import { ERRORS, type ErrorCode } from '../../../src/kernel/errors.ts'
import { type Call, send } from '../api.ts'
import { useOwner, usePermissions, useResource } from '../data.ts'
import { bytes, count, exactMoney, plural } from '../format.ts'
import { costOf, Outcome } from '../parts/call-table.tsx'
import { Id, JsonDetails, Snippet } from '../parts/copy.tsx'
import { DialogButton, type FormCallbacks, FormDialog } from '../parts/dialog.tsx'
import { TextField } from '../parts/fields.tsx'
import { Balance, Budget, Fact, Facts, KeyLink, PersonLink, RelativeTime } from '../parts/figures.tsx'
import { Heading, Loaded } from '../parts/states.tsx'
import { Link, withQuery } from '../router.tsx'
import { BillTable } from './request-bill.tsx'
import { Timeline } from './request-timeline.tsx'

const REQUESTS = { to: '/requests', title: 'Requests' }
const OPEN_STATES: readonly string[] = ['waiting', 'in_flight', 'deferred']

export function RequestPage({ id }: { readonly id: string }) {
  const [isOpen, setOpen] = useState(true)
  const { isOperator, maySeeAll } = usePermissions()
  const asked = { id, expand: 'bill', wait: 0 }
  const call = useResource('/gateway/v1/requests/{id}', asked, isOpen ? 2_000 : null)
  const state = call.value?.state
  useOwner(call.value?.account_id)
  if (isOpen && state !== undefined && !OPEN_STATES.includes(state)) setOpen(false)
  return (
    <Loaded resource={call} lines={8} of={REQUESTS}>
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
          {maySeeAll && <Bodies id={id} />}
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
  const { isDeveloper, maySeeAll } = usePermissions()
  const own = isDeveloper ? '/v1/keys/me' : '/v1/keys/{id}'
  const { value: key } = useResource(own, { id: isDeveloper ? null : keyId }, 2_000)
  const { value: account } = useResource('/gateway/v1/accounts/self', maySeeAll ? {} : null, 2_000)
  const isEnforced = account?.credit_enforced === true
  return (
    <Facts>
      <Fact title="Budget of the key" value={key && <Budget of={key} />} />
      <Fact title="Budget of the account" value={account && <Budget of={account} />} />
      <Fact title="Credit left" value={isEnforced && <Balance usd={account.balance_usd} />} />
    </Facts>
  )
}

function CallFacts({ of: call }: { readonly of: Call }) {
  const { isOperator, maySeeAll } = usePermissions()
  const owner = isOperator ? { id: call.account_id } : null
  const { value: account } = useResource('/gateway/v1/accounts/{id}', owner)
  const { parent_id: parent, socket_id: socket, session_id: session, person_id: person } = call
  const usage = call.state === 'refused' ? null : call.usage
  const isSame = call.model === call.model_served
  return (
    <Facts>
      <Fact title="Request id" value={<Id id={call.id} />} />
      <Fact title="Account" value={account && <Link to={`/accounts/${account.id}`}>{account.name}</Link>} />
      <Fact title="Person" value={person && maySeeAll && <PersonLink id={person} />} />
      <Fact title="Upstream’s id" value={call.upstream_request_id && <Id id={call.upstream_request_id} />} />
      <Fact title="Created upstream" value={call.object_id && <Id id={call.object_id} />} />
      <Fact title="Part of" value={parent && <Link to={`/requests/${parent}`}>the batch</Link>} />
      <Fact title="Socket" value={socket && <Link to={`/requests?socket=${socket}`}>{socket}</Link>} />
      <Fact
        title="Session"
        value={session && <Link to={withQuery('/requests', { session })}>{session}</Link>}
      />
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

function CreditBack({ of: call, ...callbacks }: FormCallbacks<unknown> & { readonly of: Call }) {
  const [reason, setReason] = useState('')
  const body = { request_ids: [call.id], reason }
  return (
    <FormDialog
      title={`Credit back ${exactMoney(call.cost_usd ?? 0)}`}
      submit="Credit back"
      isReady={reason.trim() !== ''}
      {...callbacks}
      onSubmit={() => send('POST /gateway/v1/credits', { account: call.account_id }, body)}
    >
      <p>The cost of the call is added to the credit, once. The recorded cost does not change.</p>
      <TextField label="Reason" isRequired value={reason} onInput={setReason} />
    </FormDialog>
  )
}

/** The logged bodies of a call. They are read when the section is opened. */
export function Bodies({ id }: { readonly id: string }) {
  const [isOpen, setOpen] = useState(false)
  const bodies = useResource('/gateway/v1/requests/{id}/bodies', isOpen ? { id } : null)
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
