import { type Credit, type Balance as CurrentBalance, send } from '../api.ts'
import { useAccountId, usePermissions, useResource } from '../data.ts'
import { exactMoney } from '../format.ts'
import { given, nanosOf, nanosOfUsd, type Reading, readAmount, readName, usd } from '../forms/readings.ts'
import { useForm } from '../forms/use-form.ts'
import { DialogButton, type FormCallbacks, FormDialog } from '../parts/dialog.tsx'
import { AmountField, TextField } from '../parts/fields.tsx'
import f from '../parts/figures.module.css'
import { ActorName, Balance, Figure, Money, Stat, Sums, Timestamp } from '../parts/figures.tsx'
import { Listed, usePages } from '../parts/listed.tsx'
import { Empty, Heading, Loaded } from '../parts/states.tsx'
import { type Column, usdColumn } from '../parts/table.tsx'

/** Shows the balance, and the ledger entries that changed it. */
export function CreditsPage({ query }: { readonly query: URLSearchParams }) {
  const { isOperator } = usePermissions()
  const account = useAccountId()
  const balance = useResource('/gateway/v1/balance', {}, 5_000)
  const credits = usePages('/gateway/v1/credits', query, {})
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
              {(callbacks) => (
                <CreditForm isCorrection accountId={account} balance={balance.value} {...callbacks} />
              )}
            </DialogButton>
            <DialogButton title="Top up" kind="primary" onDone={refresh}>
              {(callbacks) => <CreditForm accountId={account} balance={balance.value} {...callbacks} />}
            </DialogButton>
          </>
        )}
      </Heading>
      <Loaded resource={balance} lines={3}>
        {(value) => <Stats of={value} />}
      </Loaded>
      <h2>Ledger</h2>
      <Listed
        of={credits}
        caption="Ledger"
        columns={columnsOf(credits.value?.data ?? [])}
        empty={
          <Empty
            title="No credit yet."
            words={`Top-ups, corrections and calls credited back are listed here, with the balance after each.${isOperator ? '' : ' Operators add credit.'}`}
          />
        }
      />
    </>
  )
}

function Stats({ of: balance }: { readonly of: CurrentBalance }) {
  const { balance_usd: usd, enforced } = balance
  return (
    <Sums>
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
    </Sums>
  )
}

const KINDS = { top_up: 'Top-up', correction: 'Correction', credit_back: 'Credit back' } as const

/** All digits of amounts. Zeros that are not printed align the decimal points. */
function exactColumn(
  title: string,
  entries: readonly Credit[],
  usdOf: (entry: Credit) => number,
  more: Partial<Column<Credit>> = {},
): Column<Credit> {
  const decimalsOf = (entry: Credit) => exactMoney(usdOf(entry)).split('.')[1]?.length ?? 0
  const most = Math.max(...entries.map(decimalsOf))
  const cell = (entry: Credit) => (
    <>
      <Figure usd={usdOf(entry)} decimals={decimalsOf(entry)} />
      <span class={f.unprinted} aria-hidden="true">
        {'0'.repeat(most - decimalsOf(entry))}
      </span>
    </>
  )
  return usdColumn(title, usdOf, { ...more, cell })
}

const columnsOf = (entries: readonly Credit[]): readonly Column<Credit>[] => [
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
  exactColumn('Amount, USD', entries, ({ amount_usd }) => amount_usd, { lead: 'right' }),
  exactColumn('Balance after, USD', entries, ({ balance_after_usd }) => balance_after_usd),
]

interface CreditFormProps extends FormCallbacks<unknown> {
  readonly isCorrection?: boolean
  /** The account, whatever account the page shows when the form is sent. */
  readonly accountId: string
  readonly balance: CurrentBalance | null
}

function readMoved(amount: string, isCorrection: boolean): Reading<unknown> {
  const reading = readAmount(amount)
  if ('problem' in reading) return reading
  const size = nanosOf(amount) ?? 0n
  if (size === 0n) return { problem: 'Write an amount above 0.' }
  return given(usd(isCorrection ? -size : size))
}

export function CreditForm({ isCorrection = false, accountId, balance, ...callbacks }: CreditFormProps) {
  const { fields, bind, submit } = useForm({
    edited: null,
    save: (changes, name) => send('POST /gateway/v1/credits', { account: accountId }, changes, name),
    fieldsOf: () => ({ amount_usd: '', reason: '' }),
    read: ({ amount_usd, reason }) => ({
      amount_usd: readMoved(amount_usd, isCorrection),
      reason: readName(reason),
    }),
  })
  const size = nanosOf(fields.amount_usd) ?? 0n
  const before = nanosOfUsd(balance?.balance_usd ?? 0)
  const after = before + (isCorrection ? -size : size)
  return (
    <FormDialog
      title={isCorrection ? 'Deduct credit' : 'Top up'}
      submit={isCorrection ? 'Deduct' : 'Add credit'}
      {...callbacks}
      onSubmit={() => submit()}
    >
      <AmountField label={isCorrection ? 'Amount to deduct, USD' : 'Amount, USD'} {...bind('amount_usd')} />
      <TextField
        label="Reason"
        hint="Shown in the ledger. For example, an invoice number."
        isRequired
        maxLength={500}
        {...bind('reason')}
      />
      {balance !== null && (
        <p role="status">
          Balance: {exactMoney(Number(before) / 1e9)}{' '}
          {size !== 0n && <b>→ {exactMoney(Number(after) / 1e9)}</b>}
        </p>
      )}
      {balance !== null && size !== 0n && after < 0n && <p class="high">The balance would be negative.</p>}
    </FormDialog>
  )
}
