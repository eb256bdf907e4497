import { useState } from 'preact/hooks'
import { type Key, type NewKey, send } from '../api.ts'
import { Dialog, Field, FormDialog } from '../ui/dialog.tsx'
import { Copy } from '../ui/figures.tsx'

interface Fields {
  readonly name: string
  readonly budget: string
  readonly models: string
  readonly expires: string
  readonly isLogged: boolean
}

function fieldsOf(key: Key | null): Fields {
  return {
    name: key?.name ?? '',
    budget: key?.monthly_budget_usd?.toString() ?? '',
    models: key?.allowed_models?.join('\n') ?? '',
    expires: key?.expires_at?.slice(0, 16) ?? '',
    isLogged: key?.log_requests ?? false,
  }
}

function bodyOf({ name, budget, models, expires, isLogged }: Fields): unknown {
  const listed = models.split(/[\s,]+/).filter((model) => model !== '')
  return {
    name,
    monthly_budget_usd: budget === '' ? null : Number(budget),
    allowed_models: listed.length === 0 ? null : listed,
    expires_at: expires === '' ? null : `${expires}:00Z`,
    log_requests: isLogged,
  }
}

/** A new key, or other limits for one that exists. */
export function KeyForm({
  edited,
  onClose,
  onDone,
}: {
  readonly edited: Key | null
  onClose(): void
  onDone(key: Key | NewKey): void
}) {
  const [fields, setFields] = useState(() => fieldsOf(edited))
  const set = (changes: Partial<Fields>) => setFields((before) => ({ ...before, ...changes }))
  return (
    <FormDialog
      title={edited === null ? 'New key' : 'Limits'}
      submit={edited === null ? 'Create key' : 'Save'}
      isReady={fields.name.trim() !== ''}
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
      <Field
        label="Name"
        hint="One key per service and environment: a leaked key with a small cap is a small problem."
      >
        {(id) => (
          <input
            id={id}
            value={fields.name}
            maxLength={240}
            required
            onInput={(event) => set({ name: event.currentTarget.value })}
          />
        )}
      </Field>
      <Field
        label="Budget per month, USD"
        hint="A hard cap, from the first of the month, UTC. Empty is no cap."
      >
        {(id) => (
          <input
            id={id}
            inputMode="decimal"
            pattern="[0-9]*\.?[0-9]{0,9}"
            value={fields.budget}
            onInput={(event) => set({ budget: event.currentTarget.value.trim() })}
          />
        )}
      </Field>
      <Field label="Models" hint="Exact names, one per line. Empty is every model.">
        {(id) => (
          <textarea
            id={id}
            rows={3}
            spellcheck={false}
            value={fields.models}
            onInput={(event) => set({ models: event.currentTarget.value })}
          />
        )}
      </Field>
      <Field label="Expires, UTC" hint="Empty is never.">
        {(id) => (
          <input
            id={id}
            type="datetime-local"
            value={fields.expires}
            onInput={(event) => set({ expires: event.currentTarget.value })}
          />
        )}
      </Field>
      <label class="check">
        <input
          type="checkbox"
          checked={fields.isLogged}
          onChange={(event) => set({ isLogged: event.currentTarget.checked })}
        />{' '}
        Keep the bodies of its calls
      </label>
    </FormDialog>
  )
}

/** A secret is shown once: a reader that leaves before it was copied is asked. */
export function SecretDialog({
  title,
  secret,
  hint,
  onClose,
}: {
  readonly title: string
  readonly secret: string
  readonly hint: string
  onClose(): void
}) {
  const [isCopied, setCopied] = useState(false)
  const mayClose = () => isCopied || confirm('It was not copied and is not shown again. Leave all the same?')
  return (
    <Dialog title={title} onClose={onClose} mayClose={mayClose}>
      <p>{hint} It is shown now and never again.</p>
      <p class="secret">
        <code>{secret}</code>
        <Copy text={secret} what="the secret" onCopied={() => setCopied(true)} />
      </p>
      <div class="actions">
        <button type="button" class="primary" onClick={() => mayClose() && onClose()}>
          Done
        </button>
      </div>
    </Dialog>
  )
}
