import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { type CreatedKey, type Key, send } from '../api.ts'
import { useNow, useResource } from '../data.ts'
import { duration, relativeTime } from '../format.ts'
import { type FormCallbacks, FormDialog } from '../parts/dialog.tsx'
import { SelectField } from '../parts/fields.tsx'
import { NewKeyDialog } from '../parts/secret-dialog.tsx'
import { Link, setQuery, useRoute } from '../router.tsx'
import s from './rotation.module.css'

const QUIET_CHOICES_MS = [60_000, 3_600_000, 86_400_000, 7 * 86_400_000]

/**
 * The steps of a rotation. The URL stores the successor, and how long the old key must be unused, so that a user can leave
 * the page and continue later. The page warns, but refuses no step.
 */
export function Rotation({ of: key, revoke }: { readonly of: Key; readonly revoke: ComponentChildren }) {
  const { query } = useRoute()
  const now = useNow(1_000)
  const successorId = query.get('successor')
  const successor = useResource('/v1/keys/{id}', { id: successorId }, 3_000)
  if (successorId === null) return null
  const quietMs = Number(query.get('quiet') ?? 3_600_000)
  const usedMs = key.last_used_at === null ? null : now - Date.parse(key.last_used_at)
  const isQuiet = usedMs === null || usedMs >= quietMs
  const used = successor.value?.last_used_at ?? null
  return (
    <ol class={s.steps} aria-label="Rotating this key">
      <Step title="Create the new key" isDone>
        <Link to={`/keys/${successorId}`}>{successor.value?.name ?? 'the new key'}</Link>
      </Step>
      <Step title="Deploy the new key" isDone={used !== null}>
        {used === null
          ? 'It has not been used yet.'
          : `First seen, last used ${relativeTime(Date.parse(used), now)}`}
      </Step>
      <Step title="Wait until the old key is unused" isDone={isQuiet}>
        <span>{usedMs === null ? 'Never used' : `Last used ${relativeTime(now - usedMs, now)}`}</span>
        <label>
          Unused for{' '}
          <select
            value={quietMs}
            onChange={(event) => setQuery({ quiet: event.currentTarget.value }, 'replace')}
          >
            {QUIET_CHOICES_MS.map((ms) => (
              <option key={ms} value={ms}>
                {ms === 3_600_000 ? '1 hour' : duration(ms).replace(' 0 s', '')}
              </option>
            ))}
          </select>
        </label>
      </Step>
      <Step title="Revoke the old key" isDone={key.status !== 'usable'}>
        {key.status === 'usable' ? revoke : 'Done.'}
        {key.status === 'usable' && !isQuiet && <span class="high">Something still uses it.</span>}
      </Step>
    </ol>
  )
}

interface StepProps {
  readonly title: string
  readonly isDone: boolean
  readonly children: ComponentChildren
}

function Step({ title, isDone, children }: StepProps) {
  return (
    <li class={isDone ? s.done : undefined}>
      <b>{title}</b>
      <span>{children}</span>
    </li>
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
  const [created, setCreated] = useState<CreatedKey | null>(null)
  const body = end === '' ? {} : { old_expires_in_seconds: Number(end) }
  if (created !== null)
    return <NewKeyDialog of={created} hint={` The old key ${OLD_KEY[end]}.`} onDone={onDone} />
  return (
    <FormDialog
      title="Rotate this key"
      submit="Rotate"
      onClose={onClose}
      onSubmit={() => send('POST /v1/keys/{id}/rotate', { id: key.id }, body)}
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
