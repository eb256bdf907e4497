import { useMemo } from 'preact/hooks'
import { type Credit, type Balance as CurrentBalance, type ListOf, send } from '../api.ts'
import { usePermissions, useResource } from '../data.ts'
import { exactMoney, parseAmount } from '../format.ts'
import { withQuery } from '../router.tsx'
import { DialogButton, type FormCallbacks, FormDialog } from '../ui/dialog.tsx'
import { Stat } from '../ui/facts.tsx'
import { AmountField, TextField, useFields } from '../ui/fields.tsx'
import { Balance, exactFigure, Money, Timestamp } from '../ui/figures.tsx'
import { Empty, Heading, Loaded } from '../ui/states.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { ActorName } from './activity.tsx'

const ROWS = 100

/** Shows the balance, and the ledger entries that changed it. */
export function CreditsPage({ query }: { readonly query: URLSearchParams }) {
  const { isOperator } = usePermissions()
  const after = query.get('after')
  const balance = useResource<CurrentBalance>('/gateway/v1/balance', 5_000)
  const credits = useResource<ListOf<Credit>>(
    withQuery('/gateway/v1/credits', { limit: ROWS, after }),
    after === null ? 5_000 : null,
  )
  function refresh(): void {
    balance.refresh()
    credits.refresh()
  }
  return (
    <>
      <Heading title="Credits">
        {isOperator && (
          <>
            <DialogButton title="Deduct credit" onDone={refresh}>
              {(callbacks) => <CreditForm isCorrection balance={balance.value} {...callbacks} />}
            </DialogButton>
            <DialogButton title="Top up" kind="primary" onDone={refresh}>
              {(callbacks) => <CreditForm balance={balance.value} {...callbacks} />}
            </DialogButton>
          </>
        )}
      </Heading>
      <Loaded resource={balance} lines={3}>
        {(value) => <Stats of={value} />}
      </Loaded>
      <h2>Ledger</h2>
      <Loaded resource={credits} lines={5}>
        {({ data, next }) =>
          data.length === 0 && after === null ? (
            <Empty
              title="No credit yet."
              words={`Top-ups, corrections and calls credited back are listed here, with the balance after each.${isOperator ? '' : ' Operators add credit.'}`}
            />
          ) : (
            <Table caption="Ledger" columns={COLUMNS} rows={data} after={after} next={next} />
          )
        }
      </Loaded>
    </>
  )
}

function Stats({ of: balance }: { readonly of: CurrentBalance }) {
  const { balance_usd: usd, enforced } = balance
  return (
    <ul class="sums">
      <Stat
        title="Balance"
        value={
          <span class={usd <= 0 && enforced ? 'bad' : undefined}>
            <Balance usd={usd} />
          </span>
        }
        note={enforced ? 'calls are refused at $0' : 'not enforced: calls continue below $0'}
      />
      <Stat
        title="Reserved"
        value={<Money to="/requests?state=in_flight" usd={balance.held_usd} />}
        note="by calls in flight"
      />
      <Stat title="Added" value={<Money usd={balance.credited_usd} />} note="in total" />
      <Stat title="Charged" value={<Money to="/usage" usd={balance.charged_usd} />} note="in total" />
    </ul>
  )
}

const KINDS = { top_up: 'Top-up', correction: 'Correction', credit_back: 'Credit back' } as const

const COLUMNS: readonly Column<Credit>[] = [
  { title: 'Time, UTC', cell: ({ created_at }) => <Timestamp at={created_at} /> },
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
  { title: 'By', isMinor: true, cell: ({ actor }) => <ActorName actor={actor} /> },
  { title: 'Amount, USD', isFigure: true, lead: 'right', cell: (entry) => exactFigure(entry.amount_usd) },
  { title: 'Balance after, USD', isFigure: true, cell: (entry) => exactFigure(entry.balance_after_usd) },
]

interface CreditFormProps extends FormCallbacks<unknown> {
  readonly isCorrection?: boolean
  readonly balance: CurrentBalance | null
}

function CreditForm({ isCorrection = false, balance, ...callbacks }: CreditFormProps) {
  const { fields, bind } = useFields(() => ({ amount: '', reason: '' }))
  // The same name for a repeated attempt, so that the amount is added only once.
  const name = useMemo(() => crypto.getRandomValues(new Uint32Array(4)).join('-'), [fields])
  const size = parseAmount(fields.amount)
  const moved = (isCorrection ? -1 : 1) * (size || 0)
  const before = balance?.balance_usd ?? 0
  return (
    <FormDialog
      title={isCorrection ? 'Deduct credit' : 'Top up'}
      submit={isCorrection ? 'Deduct' : 'Add credit'}
      isReady={balance !== null && (size ?? 0) > 0 && fields.reason.trim() !== ''}
      {...callbacks}
      onSubmit={() => send('POST', '/gateway/v1/credits', { amount_usd: moved, reason: fields.reason }, name)}
    >
      <AmountField label={isCorrection ? 'Amount to deduct, USD' : 'Amount, USD'} {...bind('amount')} />
      <TextField
        label="Reason"
        hint="Shown in the ledger. For example, an invoice number."
        isRequired
        maxLength={500}
        {...bind('reason')}
      />
      <p role="status">
        Balance: {exactMoney(before)} {moved !== 0 && <b>→ {exactMoney(before + moved)}</b>}
      </p>
      {moved !== 0 && before + moved < 0 && <p class="high">The balance would be negative.</p>}
    </FormDialog>
  )
}
