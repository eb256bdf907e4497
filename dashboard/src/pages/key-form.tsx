import { useState } from 'preact/hooks'
import { type Key, type NewKey, send } from '../api.ts'
import { amountOf } from '../format.ts'
import { Button } from '../ui/button.tsx'
import { ClientSetup } from '../ui/clients.tsx'
import { Dialog, type Ends, FormDialog } from '../ui/dialog.tsx'
import {
  AmountField,
  CheckField,
  MetadataField,
  ModelsField,
  metadataOf,
  type Pairs,
  pairsOf,
  SelectField,
  TextField,
} from '../ui/fields.tsx'
import { Snippet } from '../ui/figures.tsx'

interface Fields {
  readonly name: string
  readonly budget: string
  readonly daily: string
  readonly rate: string
  readonly mode: string
  readonly metadata: Pairs
  readonly models: readonly string[]
  readonly expires: string
  readonly isLogged: boolean
}

function fieldsOf(key: Key | null): Fields {
  return {
    name: key?.name ?? '',
    budget: key?.monthly_budget_usd?.toString() ?? '',
    daily: key?.daily_budget_usd?.toString() ?? '',
    rate: key?.requests_per_minute?.toString() ?? '',
    mode: key?.budget_mode ?? '',
    metadata: pairsOf(key?.metadata),
    models: key?.allowed_models ?? [],
    expires: key?.expires_at?.slice(0, 16) ?? '',
    isLogged: key?.log_requests ?? false,
  }
}

/** The time of a field for dates, in UTC; null if it is empty. */
export const instantOf = (text: string) => (text === '' ? null : `${text}:00Z`)

const bodyOf = ({ name, budget, daily, rate, mode, metadata, models, expires, isLogged }: Fields) => ({
  name,
  monthly_budget_usd: amountOf(budget),
  daily_budget_usd: amountOf(daily),
  requests_per_minute: amountOf(rate),
  budget_mode: mode === '' ? null : mode,
  metadata: metadataOf(metadata),
  allowed_models: models.length === 0 ? null : models,
  expires_at: instantOf(expires),
  log_requests: isLogged,
})

/** A new key, or other limits for one that exists. */
export function KeyForm({ edited, onClose, onDone }: Ends<Key | NewKey> & { readonly edited: Key | null }) {
  const [fields, setFields] = useState(() => fieldsOf(edited))
  const set = (changes: Partial<Fields>) => setFields((before) => ({ ...before, ...changes }))
  /** The value of a field that is text, and its change. */
  const bound = (name: 'name' | 'budget' | 'daily' | 'rate' | 'expires' | 'mode') => ({
    value: fields[name],
    onInput: (text: string) => set({ [name]: text }),
  })
  const isNumeric = [fields.budget, fields.daily, fields.rate].every((text) => !Number.isNaN(amountOf(text)))
  return (
    <FormDialog
      title={edited === null ? 'New key' : 'Limits'}
      submit={edited === null ? 'Create key' : 'Save'}
      isReady={fields.name.trim() !== '' && isNumeric}
      isWide
      onClose={onClose}
      onSubmit={async () => {
        const body = bodyOf(fields)
        onDone(
          edited === null
            ? await send<NewKey>('POST', '/v1/keys', body)
            : await send<Key>('PATCH', `/v1/keys/${edited.id}`, body),
        )
      }}
    >
      <TextField
        label="Name"
        hint="One key per service and environment: a leaked key with a small cap is a small problem."
        maxLength={240}
        isRequired
        {...bound('name')}
      />
      <div class="columns">
        <AmountField
          label="Budget per month, USD"
          hint="A hard cap from the first of the month, UTC. Empty: none."
          {...bound('budget')}
        />
        <AmountField
          label="Budget per day, USD"
          hint="A hard cap per UTC day. Empty: none."
          {...bound('daily')}
        />
        <TextField label="Requests per minute" hint="Over all nodes. Empty: no limit." {...bound('rate')} />
        <TextField label="Expires, UTC" hint="Empty: never." type="datetime-local" {...bound('expires')} />
      </div>
      <ModelsField chosen={fields.models} onInput={(models) => set({ models })} />
      <div class="columns">
        <MetadataField pairs={fields.metadata} onInput={(metadata) => set({ metadata })} />
        <SelectField
          label="Budget mode"
          hint="Exact: calls wait while others have reserved the rest of the budget. Settled: calls never wait, but may together exceed it."
          options={{ '': 'gateway default', exact: 'exact', settled: 'settled' }}
          {...bound('mode')}
        />
      </div>
      <CheckField
        label="Log the bodies of its requests"
        isChecked={fields.isLogged}
        onChange={(isLogged) => set({ isLogged })}
      />
    </FormDialog>
  )
}

/** Other limits for many keys. A field that is empty changes nothing. */
export function BulkForm({ keys, onClose, onDone }: Ends<void> & { readonly keys: readonly Key[] }) {
  const [how, setHow] = useState('raise')
  const [budget, setBudget] = useState('')
  const [expires, setExpires] = useState('')
  const [done, setDone] = useState(0)
  const usd = amountOf(budget)
  /** The keys of a rotation share a budget, which is raised once. */
  const changes = keys.flatMap((key, i) => {
    const isFirst = keys.findIndex(({ budget_id }) => budget_id === key.budget_id) === i
    const cap = how === 'set' ? usd : (key.monthly_budget_usd ?? 0) + (usd ?? 0)
    const hasBudget = usd !== null && isFirst && (how === 'set' || key.monthly_budget_usd !== null)
    const body = {
      ...(hasBudget ? { monthly_budget_usd: cap } : {}),
      ...(expires === '' ? {} : { expires_at: instantOf(expires) }),
    }
    return Object.keys(body).length === 0 ? [] : [{ key, body }]
  })
  return (
    <FormDialog
      title={`Change ${keys.length} keys`}
      submit={done === 0 ? 'Change' : `${done} of ${changes.length} changed`}
      isReady={changes.length > 0 && !Number.isNaN(usd)}
      onClose={onClose}
      onSubmit={async () => {
        for (const { key, body } of changes.slice(done)) {
          await send('PATCH', `/v1/keys/${key.id}`, body)
          setDone((n) => n + 1)
        }
        onDone()
      }}
    >
      <SelectField
        label="Budget per month"
        value={how}
        options={{ raise: 'Raise by', set: 'Set to' }}
        onInput={setHow}
      />
      <AmountField
        label="Amount, USD"
        hint={
          how === 'raise'
            ? 'Keys without a cap stay without one. Leave empty to keep the current value.'
            : 'Leave empty to keep the current value.'
        }
        value={budget}
        onInput={setBudget}
      />
      <TextField
        label="Expires, UTC"
        hint="Leave empty to keep the current value."
        type="datetime-local"
        value={expires}
        onInput={setExpires}
      />
    </FormDialog>
  )
}

const OLD_KEY = {
  '': 'works until I revoke it',
  3600: 'expires in an hour',
  86400: 'expires in a day',
  604800: 'expires in a week',
} as const

/** Rotation creates a second key; the form says what happens to the first one. */
export function RotateForm({ of: key, onClose, onDone }: Ends<NewKey> & { readonly of: Key }) {
  const [end, setEnd] = useState('')
  return (
    <FormDialog
      title="Rotate this key"
      submit="Rotate"
      onClose={onClose}
      onSubmit={async () => {
        const body = end === '' ? {} : { old_expires_in_seconds: Number(end) }
        onDone(await send<NewKey>('POST', `/v1/keys/${key.id}/rotate`, body))
      }}
    >
      <p>
        You get a new secret with the same name, models and limits. Both keys draw on one budget, so the
        rotation cannot spend it twice.
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
  /** The lines for clients follow. */
  readonly isApiKey?: boolean
  onClose(): void
}

/** A secret is shown once: a reader that leaves before it was copied is asked. */
export function SecretDialog({ title, secret, hint, isApiKey = false, onClose }: SecretDialogProps) {
  const [isCopied, setCopied] = useState(false)
  const mayClose = () =>
    isCopied || confirm('You have not copied the secret, and it is not shown again. Leave anyway?')
  return (
    <Dialog title={title} isWide={isApiKey} onClose={onClose} mayClose={mayClose}>
      <p>{hint} It is shown only once.</p>
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
