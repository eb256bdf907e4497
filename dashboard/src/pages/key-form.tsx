import { useState } from 'preact/hooks'
import type { Key, NewKey } from '../api.ts'
import {
  amountText,
  given,
  instantText,
  readAmount,
  readCount,
  readInstant,
  readName,
} from '../forms/readings.ts'
import { useForm } from '../forms/use-form.ts'
import { type FormCallbacks, FormDialog } from '../parts/dialog.tsx'
import { AmountField, CheckField, InstantField, SelectField, TextField } from '../parts/fields.tsx'
import { MetadataField } from '../parts/metadata-field.tsx'
import { ModelsField } from '../parts/models-field.tsx'
import { SecretDialog } from '../parts/secret-dialog.tsx'

const fieldsOf = (key: Key | null) => ({
  name: key?.name ?? '',
  monthly_budget_usd: amountText(key?.monthly_budget_usd),
  daily_budget_usd: amountText(key?.daily_budget_usd),
  requests_per_minute: key?.requests_per_minute?.toString() ?? '',
  budget_mode: key?.budget_mode ?? '',
  metadata: key?.metadata ?? {},
  allowed_models: key?.allowed_models ?? [],
  expires_at: instantText(key?.expires_at),
  log_requests: key?.log_requests ?? false,
})

const read = (fields: ReturnType<typeof fieldsOf>) => ({
  name: readName(fields.name),
  monthly_budget_usd: readAmount(fields.monthly_budget_usd),
  daily_budget_usd: readAmount(fields.daily_budget_usd),
  requests_per_minute: readCount(fields.requests_per_minute),
  budget_mode: given(fields.budget_mode || null),
  metadata: given(fields.metadata),
  allowed_models: given(fields.allowed_models.length === 0 ? null : fields.allowed_models),
  expires_at: readInstant(fields.expires_at),
  log_requests: given(fields.log_requests),
})

export function KeyForm({ edited, onClose, onDone }: FormCallbacks<Key> & { readonly edited: Key | null }) {
  const { bind, submit } = useForm({ path: '/v1/keys', edited, fieldsOf, read })
  const [created, setCreated] = useState<NewKey | null>(null)
  if (created !== null)
    return (
      <SecretDialog
        title={`Key “${created.name}” created`}
        secret={created.key}
        hint="Put it where your client reads its API key."
        isApiKey
        onClose={() => onDone(created)}
      />
    )
  return (
    <FormDialog
      title={edited === null ? 'New key' : 'Change limits'}
      submit={edited === null ? 'Create key' : 'Save'}
      isWide
      onClose={onClose}
      onSubmit={() => submit<NewKey>()}
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
        <AmountField
          label="Budget per month, USD"
          hint="A hard limit per calendar month, UTC. Optional."
          {...bind('monthly_budget_usd')}
        />
        <AmountField
          label="Budget per day, USD"
          hint="A hard limit per day, UTC. Optional."
          {...bind('daily_budget_usd')}
        />
        <TextField
          label="Requests per minute"
          hint="Across all nodes. Leave empty for no limit."
          {...bind('requests_per_minute')}
        />
        <InstantField label="Expires, UTC" hint="Optional." {...bind('expires_at')} />
      </div>
      <ModelsField {...bind('allowed_models')} />
      <div class="columns">
        <MetadataField {...bind('metadata')} />
        <SelectField
          label="Budget mode"
          hint="Exact: calls wait while other calls have reserved the rest of the budget. Settled: calls never wait, but together they may exceed the budget."
          options={{ '': 'gateway default', exact: 'exact', settled: 'settled' }}
          {...bind('budget_mode')}
        />
      </div>
      <CheckField label="Log the bodies of calls" {...bind('log_requests')} />
    </FormDialog>
  )
}
