import { useState } from 'preact/hooks'
import { type Key, send } from '../api.ts'
import { bulkChanges, type How } from '../forms/bulk-changes.ts'
import { readAmount } from '../forms/readings.ts'
import { type FormCallbacks, FormDialog } from '../parts/dialog.tsx'
import { AmountField, InstantField, SelectField } from '../parts/fields.tsx'

/** Changes the limits of several keys. An empty field changes nothing. */
export function BulkForm({ keys, ...callbacks }: FormCallbacks<null> & { readonly keys: readonly Key[] }) {
  const [how, setHow] = useState<string>('raise')
  const [amount, setAmount] = useState('')
  const [expires, setExpires] = useState('')
  const [done, setDone] = useState(0)
  const reading = readAmount(amount)
  const problem = 'problem' in reading ? reading.problem : undefined
  // The keys of the list are read again while the form is open; it continues where it was.
  const [chosen] = useState(keys)
  const changes = bulkChanges(chosen, how as How, amount, expires)
  return (
    <FormDialog
      title={`Change ${chosen.length} keys`}
      submit={done === 0 ? 'Change' : `${done} of ${changes.length} changed`}
      isReady={changes.length > 0 && problem === undefined}
      {...callbacks}
      onSubmit={async () => {
        for (const { key, body } of changes.slice(done)) {
          await send('PATCH', `/v1/keys/${key.id}`, body)
          setDone((n) => n + 1)
        }
        return null
      }}
    >
      <SelectField
        label="Budget per month"
        options={{ raise: 'Raise by', set: 'Set to' }}
        value={how}
        onInput={setHow}
      />
      <AmountField
        label="Amount, USD"
        hint={`${how === 'raise' ? 'Keys without a budget get none. ' : ''}Leave empty to keep the current value.`}
        value={amount}
        problem={problem}
        onInput={setAmount}
      />
      <InstantField
        label="Expires, UTC"
        hint="Leave empty to keep the current value."
        value={expires}
        onInput={setExpires}
      />
    </FormDialog>
  )
}
