import type { Balance } from '../api.ts'
import { exactMoney } from '../format.ts'
import { given, nanosOf, nanosOfUsd, type Reading, readAmount, readName, usd } from '../forms/readings.ts'
import { useForm } from '../forms/use-form.ts'
import { type FormCallbacks, FormDialog } from '../parts/dialog.tsx'
import { AmountField, TextField } from '../parts/fields.tsx'

interface CreditFormProps extends FormCallbacks<unknown> {
  readonly isCorrection?: boolean
  /** The account, whatever account the page shows when the form is sent. */
  readonly accountId: string
  readonly balance: Balance | null
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
    path: `/gateway/v1/credits?account=${accountId}`,
    edited: null,
    isOnce: true,
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
      onSubmit={() => submit<unknown>()}
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
