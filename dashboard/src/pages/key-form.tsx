import { useState } from 'preact/hooks'
import { type Key, type NewKey, send } from '../api.ts'
import { amountOf } from '../format.ts'
import { AmountField, Dialog, Field, FormDialog } from '../ui/dialog.tsx'
import { Copy } from '../ui/figures.tsx'

interface Fields {
  readonly name: string
  readonly budget: string
  readonly daily: string
  readonly rate: string
  readonly mode: string
  readonly metadata: string
  readonly models: string
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
    metadata: Object.entries(key?.metadata ?? {})
      .map(([name, value]) => `${name}=${value}`)
      .join('\n'),
    models: key?.allowed_models?.join('\n') ?? '',
    expires: key?.expires_at?.slice(0, 16) ?? '',
    isLogged: key?.log_requests ?? false,
  }
}

const numberOf = (text: string) => (text === '' ? null : Number(text))

function pairsOf(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf('=')
      return at === -1 ? [line.trim(), ''] : [line.slice(0, at).trim(), line.slice(at + 1)]
    }),
  )
}

function bodyOf({ name, budget, daily, rate, mode, metadata, models, expires, isLogged }: Fields): unknown {
  const listed = models.split(/[\s,]+/).filter((model) => model !== '')
  return {
    name,
    monthly_budget_usd: amountOf(budget),
    daily_budget_usd: amountOf(daily),
    requests_per_minute: numberOf(rate),
    budget_mode: mode === '' ? null : mode,
    metadata: pairsOf(metadata),
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
      <AmountField
        label="Budget per month, USD"
        hint="A hard cap, from the first of the month, UTC. Empty is no cap."
        value={fields.budget}
        onInput={(budget) => set({ budget })}
      />
      <AmountField
        label="Budget per day, USD"
        hint="A hard cap per UTC day. Empty is no cap."
        value={fields.daily}
        onInput={(daily) => set({ daily })}
      />
      <Field label="Requests per minute" hint="Over all nodes. Empty is no limit.">
        {(id) => (
          <input
            id={id}
            inputMode="numeric"
            pattern="[0-9]*"
            value={fields.rate}
            onInput={(event) => set({ rate: event.currentTarget.value.trim() })}
          />
        )}
      </Field>
      <Field label="Budget mode" hint="Exact: calls wait for room. Settled: calls in flight may pass a cap.">
        {(id) => (
          <select id={id} value={fields.mode} onChange={(event) => set({ mode: event.currentTarget.value })}>
            <option value="">as the gateway is set</option>
            <option value="exact">exact</option>
            <option value="settled">settled</option>
          </select>
        )}
      </Field>
      <Field label="Metadata" hint="One name=value per line.">
        {(id) => (
          <textarea
            id={id}
            rows={2}
            spellcheck={false}
            value={fields.metadata}
            onInput={(event) => set({ metadata: event.currentTarget.value })}
          />
        )}
      </Field>
      <Field label="Models" hint="Names or patterns such as claude-*, one per line. Empty is every model.">
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
        Log the bodies of its requests
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
