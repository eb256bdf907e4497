import { useState } from 'preact/hooks'
import { type Key, type NewKey, save, send } from '../api.ts'
import { parseAmount } from '../format.ts'
import { Button } from '../ui/button.tsx'
import { ClientSetup } from '../ui/clients.tsx'
import { Dialog, type FormCallbacks, FormDialog } from '../ui/dialog.tsx'
import {
  AmountField,
  CheckField,
  MetadataField,
  ModelsField,
  SelectField,
  TextField,
  useFields,
} from '../ui/fields.tsx'
import { Snippet } from '../ui/figures.tsx'

const fieldsOf = (key: Key | null) => ({
  name: key?.name ?? '',
  budget: key?.monthly_budget_usd?.toString() ?? '',
  daily: key?.daily_budget_usd?.toString() ?? '',
  rate: key?.requests_per_minute?.toString() ?? '',
  mode: key?.budget_mode ?? '',
  metadata: key?.metadata ?? {},
  models: key?.allowed_models ?? [],
  expires: key?.expires_at?.slice(0, 16) ?? '',
  isLogged: key?.log_requests ?? false,
})

/** The time of a field for dates, in UTC; null if it is empty. */
const instantOf = (text: string) => (text === '' ? null : `${text}:00Z`)

const bodyOf = (fields: ReturnType<typeof fieldsOf>) => ({
  name: fields.name,
  monthly_budget_usd: parseAmount(fields.budget),
  daily_budget_usd: parseAmount(fields.daily),
  requests_per_minute: parseAmount(fields.rate),
  budget_mode: fields.mode || null,
  metadata: fields.metadata,
  allowed_models: fields.models.length === 0 ? null : fields.models,
  expires_at: instantOf(fields.expires),
  log_requests: fields.isLogged,
})

export function KeyForm({ edited, onClose, onDone }: FormCallbacks<Key> & { readonly edited: Key | null }) {
  const { fields, bind } = useFields(() => fieldsOf(edited))
  const [created, setCreated] = useState<NewKey | null>(null)
  const isNumeric = [fields.budget, fields.daily, fields.rate].every(
    (text) => !Number.isNaN(parseAmount(text)),
  )
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
      isReady={fields.name.trim() !== '' && isNumeric}
      isWide
      onClose={onClose}
      onSubmit={() => save<NewKey>('/v1/keys', edited, bodyOf(fields))}
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
          {...bind('budget')}
        />
        <AmountField
          label="Budget per day, USD"
          hint="A hard limit per day, UTC. Optional."
          {...bind('daily')}
        />
        <TextField
          label="Requests per minute"
          hint="Across all nodes. Leave empty for no limit."
          {...bind('rate')}
        />
        <TextField label="Expires, UTC" hint="Optional." type="datetime-local" {...bind('expires')} />
      </div>
      <ModelsField {...bind('models')} />
      <div class="columns">
        <MetadataField {...bind('metadata')} />
        <SelectField
          label="Budget mode"
          hint="Exact: calls wait while other calls have reserved the rest of the budget. Settled: calls never wait, but together they may exceed the budget."
          options={{ '': 'gateway default', exact: 'exact', settled: 'settled' }}
          {...bind('mode')}
        />
      </div>
      <CheckField label="Log the bodies of calls" {...bind('isLogged')} />
    </FormDialog>
  )
}

/** Changes the limits of several keys. An empty field changes nothing. */
export function BulkForm({ keys, ...callbacks }: FormCallbacks<void> & { readonly keys: readonly Key[] }) {
  const { fields, bind } = useFields(() => ({ how: 'raise', budget: '', expires: '' }))
  const [done, setDone] = useState(0)
  const usd = parseAmount(fields.budget)
  const isRaised = fields.how === 'raise'
  /** The keys of a rotation share a budget, which must be raised only once. */
  const changes = keys.flatMap((key, i) => {
    const isFirst = keys.findIndex(({ budget_id }) => budget_id === key.budget_id) === i
    const cap = isRaised ? (key.monthly_budget_usd ?? 0) + (usd ?? 0) : usd
    const hasBudget = usd !== null && isFirst && (!isRaised || key.monthly_budget_usd !== null)
    const body = {
      ...(hasBudget ? { monthly_budget_usd: cap } : {}),
      ...(fields.expires === '' ? {} : { expires_at: instantOf(fields.expires) }),
    }
    return Object.keys(body).length === 0 ? [] : [{ key, body }]
  })
  return (
    <FormDialog
      title={`Change ${keys.length} keys`}
      submit={done === 0 ? 'Change' : `${done} of ${changes.length} changed`}
      isReady={changes.length > 0 && !Number.isNaN(usd)}
      {...callbacks}
      onSubmit={async () => {
        for (const { key, body } of changes.slice(done)) {
          await save('/v1/keys', key, body)
          setDone((n) => n + 1)
        }
      }}
    >
      <SelectField label="Budget per month" options={{ raise: 'Raise by', set: 'Set to' }} {...bind('how')} />
      <AmountField
        label="Amount, USD"
        hint={`${isRaised ? 'Keys without a budget get none. ' : ''}Leave empty to keep the current value.`}
        {...bind('budget')}
      />
      <TextField
        label="Expires, UTC"
        hint="Leave empty to keep the current value."
        type="datetime-local"
        {...bind('expires')}
      />
    </FormDialog>
  )
}

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

interface SecretDialogProps {
  readonly title: string
  readonly secret: string
  readonly hint: string
  readonly isApiKey?: boolean
  onClose(): void
}

/** A secret is shown once, so the dialog asks for confirmation if it is closed before the secret was copied. */
export function SecretDialog({ title, secret, hint, isApiKey = false, onClose }: SecretDialogProps) {
  const [isCopied, setCopied] = useState(false)
  const mayClose = () =>
    isCopied || confirm('You have not copied the secret, and it is not shown again. Leave anyway?')
  return (
    <Dialog title={title} isWide={isApiKey} onClose={onClose} mayClose={mayClose}>
      <p>It is shown only once. {hint}</p>
      <div class="secret">
        <Snippet text={secret} what="the secret" onCopied={() => setCopied(true)} />
      </div>
      {isApiKey && (
        <>
          <p>
            Base URL <code>{location.origin}</code>. To set up a client:
          </p>
          <ClientSetup secret={secret} onCopied={() => setCopied(true)} />
        </>
      )}
      <div class="actions">
        <Button title="Done" kind="primary" onClick={() => mayClose() && onClose()} />
      </div>
    </Dialog>
  )
}
