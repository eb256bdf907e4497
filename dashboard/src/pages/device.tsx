import { useState } from 'preact/hooks'
import type { Answers } from '../../../src/api/answers.ts'
import { type Person, send } from '../api.ts'
import { useCommand } from '../data.ts'
import { Button } from '../parts/button.tsx'
import { TextField } from '../parts/fields.tsx'
import { Empty, Failure, Heading } from '../parts/states.tsx'
import { Link } from '../router.tsx'
import s from './device.module.css'

interface DeviceProps {
  readonly query: URLSearchParams
  readonly person: Person
}

/** Approves an agent or a terminal that signs in with a code. */
export function DevicePage({ query, person }: DeviceProps) {
  const given = query.get('user_code') ?? ''
  const [typed, setTyped] = useState(given)
  const [done, setDone] = useState<Answers['POST /gateway/v1/device'] | null>(null)
  const command = useCommand()
  const user_code = typed.trim().toUpperCase()
  const isCode = /^[A-Z]{4}[- ]?[A-Z]{4}$/.test(user_code)
  const answer = (approve: boolean) =>
    void command.run(async () => setDone(await send('POST /gateway/v1/device', {}, { user_code, approve })))
  if (done !== null) {
    const client = done.client || 'The device'
    return (
      <>
        <Heading title="Sign in a device" />
        <Empty
          title={done.status === 'approved' ? `${client} is signed in.` : `${client} is not signed in.`}
          words={
            done.status === 'approved'
              ? 'You can close this page. The device is listed among your keys, where you can revoke it.'
              : 'You can close this page. Nothing was given to the device.'
          }
          action={<Link to="/me">My keys</Link>}
        />
      </>
    )
  }
  return (
    <>
      <Heading title="Sign in a device" />
      <form
        class="measure"
        onSubmit={(event) => {
          event.preventDefault()
          if (isCode && !command.isBusy) answer(true)
        }}
      >
        <p class="lead">
          A device asks to make calls in your name, {person.email || person.name}, and on your budget.
        </p>
        <p>
          Compare the code with the one on the device. If you have not started a sign-in there yourself, deny
          it: whoever sent you this link would use your budget.
        </p>
        <div class={s.code}>
          <TextField label="Code" placeholder="XXXX-XXXX" value={typed} onInput={setTyped} />
        </div>
        {command.error !== null && <Failure error={command.error} />}
        <p class="buttons">
          <button type="submit" class="primary" disabled={!isCode || command.isBusy}>
            Approve
          </button>
          <Button title="Deny" isDisabled={!isCode || command.isBusy} onClick={() => answer(false)} />
        </p>
      </form>
    </>
  )
}
