import { useMemo } from 'preact/hooks'
import { type Balance, type Credit, type ListOf, send } from '../api.ts'
import { usePermissions, useResource } from '../data.ts'
import { amountOf, exactMoney, money } from '../format.ts'
import { withQuery } from '../router.tsx'
import { DialogButton, type Ends, FormDialog } from '../ui/dialog.tsx'
import { Sum } from '../ui/facts.tsx'
import { AmountField, TextField, useFields } from '../ui/fields.tsx'
import { At, Money } from '../ui/figures.tsx'
import { Empty, Heading, Show } from '../ui/states.tsx'
import { type Column, Table, usdColumn } from '../ui/table.tsx'
import { Who } from './activity.tsx'

const ROWS = 100

/** How much credit is left, and which entries moved it? */
export function CreditsPage({ query }: { readonly query: URLSearchParams }) {
  const { isOperator } = usePermissions()
  const after = query.get('after')
  const balance = useResource<Balance>('/gateway/v1/balance', 5_000)
  const credits = useResource<ListOf<Credit>>(
    withQuery('/gateway/v1/credits', { limit: ROWS, after }),
    after === null ? 5_000 : null,
  )
  const form = (kind: 'top_up' | 'correction', close: () => void) =>
    balance.value !== null && (
      <CreditForm
        kind={kind}
        balance={balance.value.balance_usd}
        onClose={close}
        onDone={() => {
          close()
          balance.refresh()
          credits.refresh()
        }}
      />
    )
  return (
    <>
      <Heading title="Credits">
        {isOperator && <DialogButton title="Correct">{(close) => form('correction', close)}</DialogButton>}
        {isOperator && (
          <DialogButton title="Top up" kind="primary">
            {(close) => form('top_up', close)}
          </DialogButton>
        )}
      </Heading>
      <Show resource={balance} lines={3}>
        {(value) => <Sums of={value} />}
      </Show>
      <h2>Ledger</h2>
      <Show resource={credits} lines={5}>
        {({ data, next }) =>
          data.length === 0 && after === null ? (
            <Empty
              title="No credit yet."
              words={`Top-ups, corrections and refunds are listed here, with the balance after each.${isOperator ? '' : ' Operators add credit.'}`}
            />
          ) : (
            <Table caption="Ledger" columns={COLUMNS} rows={data} after={after} next={next} />
          )
        }
      </Show>
    </>
  )
}

function Sums({ of: balance }: { readonly of: Balance }) {
  const { balance_usd: usd, enforced } = balance
  return (
    <ul class="sums">
      <Sum
        title="Balance"
        value={
          <span class={usd <= 0 && enforced ? 'bad' : undefined}>
            <Money usd={usd} />
          </span>
        }
        note={enforced ? 'calls are refused at $0' : 'not enforced: calls continue at $0'}
      />
      <Sum
        title="Reserved"
        value={<Money to="/requests?state=in_flight" usd={balance.held_usd} />}
        note="by calls in flight"
      />
      <Sum title="Added" value={<Money usd={balance.credited_usd} />} note="in total" />
      <Sum title="Charged" value={<Money to="/usage" usd={balance.charged_usd} />} note="for all calls" />
    </ul>
  )
}

const KINDS = { top_up: 'Top-up', correction: 'Correction', credit_back: 'Credit back' } as const

const COLUMNS: readonly Column<Credit>[] = [
  { title: 'Time, UTC', cell: ({ created_at }) => <At at={created_at} /> },
  { title: 'Kind', lead: 'left', cell: ({ kind }) => KINDS[kind] },
  {
    title: 'Reason',
    isWide: true,
    cell: ({ reason }) => (
      <span class="name" title={reason}>
        {reason}
      </span>
    ),
  },
  { title: 'By', isMinor: true, cell: ({ actor }) => <Who actor={actor} /> },
  usdColumn('Amount, USD', ({ amount_usd }) => amount_usd, { lead: 'right' }),
  usdColumn('Balance after, USD', ({ balance_after_usd }) => balance_after_usd),
]

function CreditForm({
  kind,
  balance,
  onClose,
  onDone,
}: Ends<void> & { readonly kind: 'top_up' | 'correction'; readonly balance: number }) {
  const { fields, bind } = useFields(() => ({ amount: '', reason: '' }))
  // An attempt that is repeated after a failure is booked once.
  const name = useMemo(() => crypto.getRandomValues(new Uint32Array(4)).join('-'), [fields])
  const size = amountOf(fields.amount)
  const moved = (kind === 'correction' ? -1 : 1) * (size || 0)
  return (
    <FormDialog
      title={kind === 'correction' ? 'Deduct credit' : 'Top up'}
      submit={kind === 'correction' ? 'Deduct' : 'Add credit'}
      isReady={(size ?? 0) > 0 && fields.reason.trim() !== ''}
      onClose={onClose}
      onSubmit={async () => {
        await send('POST', '/gateway/v1/credits', { amount_usd: moved, reason: fields.reason }, name)
        onDone()
      }}
    >
      <AmountField
        label={kind === 'correction' ? 'Amount to deduct, USD' : 'Amount, USD'}
        {...bind('amount')}
      />
      <TextField
        label="Reason"
        hint="Shown in the ledger. For example, an invoice number."
        isRequired
        maxLength={500}
        {...bind('reason')}
      />
      <p role="status">
        Balance: {exactMoney(balance)}
        {moved !== 0 && (
          <>
            {' → '}
            <b>{money(balance + moved, 2)}</b>
          </>
        )}
      </p>
      {balance + moved < 0 && <p class="high">The balance would be negative.</p>}
    </FormDialog>
  )
}
