import { useState } from 'preact/hooks'
import { type Session, send } from '../api.ts'
import { useCommand } from '../data.ts'
import { Field } from '../ui/dialog.tsx'
import { Failure } from '../ui/states.tsx'

/** The admin key is exchanged for a session and then forgotten: it is in no storage of the browser. */
export function SignIn({
  hasEnded,
  onSession,
}: {
  readonly hasEnded: boolean
  onSession(session: Session): void
}) {
  const [adminKey, setAdminKey] = useState('')
  const command = useCommand()
  return (
    <main class="alone">
      <h1>Tollgate</h1>
      {hasEnded && <p role="status">Your session has ended. Sign in to go on where you were.</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void command.run(async () =>
            onSession(await send<Session>('POST', '/gateway/v1/session', { admin_key: adminKey.trim() })),
          )
        }}
      >
        <Field
          label="Admin key"
          hint={
            <>
              The first start printed it and wrote it to <code>data/admin-key</code>. More of them:{' '}
              <code>tollgate admin-key create</code>
            </>
          }
        >
          {(id) => (
            <input
              id={id}
              type="password"
              autoComplete="current-password"
              required
              value={adminKey}
              onInput={(event) => setAdminKey(event.currentTarget.value)}
            />
          )}
        </Field>
        {command.error !== null && <Failure error={command.error} />}
        <button type="submit" class="primary" disabled={command.isBusy}>
          Sign in
        </button>
      </form>
    </main>
  )
}
