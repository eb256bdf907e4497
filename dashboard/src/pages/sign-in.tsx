import { useState } from 'preact/hooks'
import { type Session, send } from '../api.ts'
import { useCommand } from '../data.ts'
import mark from '../mark.svg'
import { TextField } from '../parts/fields.tsx'
import { Failure } from '../parts/states.tsx'
import s from './sign-in.module.css'

interface SignInProps {
  readonly hasEnded: boolean
  /** Where people sign in at their identity provider. Null: only with a key. */
  readonly path: string | null
  onSession(session: Session): void
}

/** People sign in at their identity provider. A key is exchanged for a session, and not stored in the browser. */
export function SignIn({ hasEnded, path, onSession }: SignInProps) {
  const [key, setKey] = useState('')
  const command = useCommand()
  const body = () =>
    /^[A-Za-z0-9]+_live_/.test(key.trim()) ? { key: key.trim() } : { admin_key: key.trim() }
  return (
    <main class={s.alone}>
      <img src={mark} alt="" width={40} height={40} />
      <h1>Tollgate</h1>
      <p class="lead quiet">
        {hasEnded
          ? 'Your session has ended. Sign in to continue on the same page.'
          : 'Spend, limits and calls of your model APIs.'}
      </p>
      {path !== null && (
        <>
          <a
            class="button primary"
            href={`${path}?return_to=${encodeURIComponent(location.pathname + location.search)}`}
          >
            Sign in with your company account
          </a>
          <p class="quiet">or with a key</p>
        </>
      )}
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void command.run(async () => onSession(await send('POST /gateway/v1/session', {}, body())))
        }}
      >
        <TextField
          label="Admin key or API key"
          hint={
            <>
              The first start wrote an admin key to <code>data/admin-key</code>. An API key shows its own
              spend and calls.
            </>
          }
          type="password"
          autoComplete="current-password"
          isRequired
          value={key}
          onInput={setKey}
        />
        {command.error !== null && <Failure error={command.error} />}
        <button type="submit" class={path === null ? 'primary' : undefined} disabled={command.isBusy}>
          Sign in
        </button>
      </form>
    </main>
  )
}
