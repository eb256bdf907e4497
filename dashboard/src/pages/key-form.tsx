import { useState } from 'preact/hooks'
import { type CreatedKey, get, type Key, send } from '../api.ts'
import { given, instantText, readInstant, readName } from '../forms/readings.ts'
import { useForm } from '../forms/use-form.ts'
import { type FormCallbacks, FormDialog } from '../parts/dialog.tsx'
import { CheckField, InstantField, MetadataField, TextField } from '../parts/fields.tsx'
import { LimitFields, limitFieldsOf, ModeField, readLimits } from '../parts/limit-fields.tsx'
import { ModelsField } from '../parts/models-field.tsx'
import { NewKeyDialog } from '../parts/secret-dialog.tsx'

const fieldsOf = (key: Key | null) => ({
  name: key?.name ?? '',
  ...limitFieldsOf(key),
  budget_mode: key?.budget_mode ?? '',
  metadata: key?.metadata ?? {},
  allowed_models: key?.allowed_models ?? [],
  expires_at: instantText(key?.expires_at),
  log_requests: key?.log_requests ?? false,
})

const read = (fields: ReturnType<typeof fieldsOf>) => ({
  name: readName(fields.name),
  ...readLimits(fields),
  budget_mode: given(fields.budget_mode || null),
  metadata: given(fields.metadata),
  allowed_models: given(fields.allowed_models.length === 0 ? null : fields.allowed_models),
  expires_at: readInstant(fields.expires_at),
  log_requests: given(fields.log_requests),
})

export function KeyForm({ edited, onClose, onDone }: FormCallbacks<Key> & { readonly edited: Key | null }) {
  const { bind, submit } = useForm({
    edited,
    fieldsOf,
    read,
    reread: ({ id }) => get('/v1/keys/{id}', { id }),
    save: (changes) =>
      edited === null
        ? send('POST /v1/keys', {}, changes)
        : send('PATCH /v1/keys/{id}', { id: edited.id }, changes),
  })
  const [created, setCreated] = useState<CreatedKey | null>(null)
  if (created !== null) return <NewKeyDialog of={created} onDone={onDone} />
  return (
    <FormDialog
      title={edited === null ? 'New key' : 'Change limits'}
      submit={edited === null ? 'Create key' : 'Save'}
      isWide
      onClose={onClose}
      onSubmit={() => submit()}
      onDone={(key) => (edited === null ? setCreated(key) : onDone(key))}
    >
      <TextField
        label="Name"
        hint="Use one key per service and environment, so that a leaked key can spend little."
        maxLength={240}
        isRequired
        {...bind('name')}
      />
      <div class="columns">
        <LimitFields bind={bind} />
        <InstantField label="Expires, UTC" hint="Optional." {...bind('expires_at')} />
      </div>
      <ModelsField {...bind('allowed_models')} />
      <div class="columns">
        <MetadataField {...bind('metadata')} />
        <ModeField {...bind('budget_mode')} />
      </div>
      <CheckField label="Log the bodies of calls" {...bind('log_requests')} />
    </FormDialog>
  )
}
