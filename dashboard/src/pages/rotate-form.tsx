import { useState } from 'preact/hooks'
import { type Key, type NewKey, send } from '../api.ts'
import { type FormCallbacks, FormDialog } from '../parts/dialog.tsx'
import { SelectField } from '../parts/fields.tsx'
import { SecretDialog } from '../parts/secret-dialog.tsx'

const OLD_KEY: Readonly<Record<string, string>> = {
  '': 'works until it is revoked',
  3600: 'expires in an hour',
  86400: 'expires in a day',
  604800: 'expires in a week',
}

/** A rotation creates a second key. The form states when the first key expires. */
export function RotateForm({ of: key, onClose, onDone }: FormCallbacks<Key> & { readonly of: Key }) {
  const [end, setEnd] = useState('')
  const [created, setCreated] = useState<NewKey | null>(null)
  const body = end === '' ? {} : { old_expires_in_seconds: Number(end) }
  if (created !== null)
    return (
      <SecretDialog
        title={`New key “${created.name}” created`}
        secret={created.key}
        hint={`Put it where your client reads its API key. The old key ${OLD_KEY[end]}.`}
        isApiKey
        onClose={() => onDone(created)}
      />
    )
  return (
    <FormDialog
      title="Rotate this key"
      submit="Rotate"
      onClose={onClose}
      onSubmit={() => send('POST', `/v1/keys/${key.id}/rotate`, body)}
      onDone={setCreated}
    >
      <p>
        You get a new key with the same name, models and limits. Both keys draw on one budget, so the budget
        cannot be spent twice.
      </p>
      <SelectField label="The old key" value={end} options={OLD_KEY} onInput={setEnd} />
      {end !== '' && <p class="high">After that, clients that still use the old key get 401.</p>}
    </FormDialog>
  )
}
