import { useState } from 'preact/hooks'
import { get, type Person, send } from '../api.ts'
import { useCommand, useOwner, usePermissions, useResource } from '../data.ts'
import { given } from '../forms/readings.ts'
import { useForm } from '../forms/use-form.ts'
import { Button } from '../parts/button.tsx'
import { JsonDetails } from '../parts/copy.tsx'
import { DangerButton, DialogButton, type FormCallbacks, FormDialog } from '../parts/dialog.tsx'
import { RelativeTime } from '../parts/figures.tsx'
import { LimitFields, limitFieldsOf, ModeField, readLimits } from '../parts/limit-fields.tsx'
import { PersonDetails } from '../parts/person-details.tsx'
import { RecordField } from '../parts/record-field.tsx'
import { Failure, Heading, Loaded, Tag } from '../parts/states.tsx'

const PEOPLE = { to: '/people', title: 'People' }

/** Shows the budget, keys and calls of a person. */
export function PersonPage({ id }: { readonly id: string }) {
  const person = useResource('/gateway/v1/people/{id}', { id }, 3_000)
  const { mayManage } = usePermissions()
  useOwner(person.value?.account_id)
  return (
    <Loaded resource={person} lines={6} of={PEOPLE}>
      {(value) => (
        <>
          <Heading
            of={PEOPLE}
            title={value.name || value.email || value.id}
            state={value.status === 'blocked' && <Tag kind="bad">blocked</Tag>}
          >
            {mayManage && <Actions of={value} onDone={person.refresh} />}
          </Heading>
          <p class="lead">
            {value.status === 'blocked' ? 'Blocked: no key works, and nobody can sign in. ' : ''}
            Last seen{' '}
            <b>
              <RelativeTime at={value.last_seen_at} />
            </b>
            .
          </p>
          <PersonDetails of={value} />
          <JsonDetails of={value} />
        </>
      )}
    </Loaded>
  )
}

interface ActionsProps {
  readonly of: Person
  onDone(): void
}

function Actions({ of: person, onDone }: ActionsProps) {
  const { isOperator } = usePermissions()
  const command = useCommand()
  const { id } = person
  const unblock = async () => {
    await send('POST /gateway/v1/people/{id}/unblock', { id })
    onDone()
  }
  return (
    <>
      <DialogButton title="Change limits" onDone={onDone}>
        {(callbacks) => <PersonForm edited={person} {...callbacks} />}
      </DialogButton>
      {isOperator && (
        <DialogButton title="Move" onDone={onDone}>
          {(callbacks) => <MoveForm of={person} {...callbacks} />}
        </DialogButton>
      )}
      {person.status === 'blocked' ? (
        <Button title="Unblock" isDisabled={command.isBusy} onClick={() => void command.run(unblock)} />
      ) : (
        <DangerButton
          verb="Block"
          noun="this person"
          name={person.name || person.email || person.id}
          run={() => send('POST /gateway/v1/people/{id}/block', { id })}
          onDone={onDone}
        >
          All keys and devices are revoked, on all nodes, and all sessions end. Keys stay revoked.
        </DangerButton>
      )}
      {command.error !== null && <Failure error={command.error} />}
    </>
  )
}

const fieldsOf = (person: Person | null) => ({
  ...limitFieldsOf(person),
  budget_mode: person?.budget_mode ?? '',
})
const read = (fields: ReturnType<typeof fieldsOf>) => ({
  ...readLimits(fields),
  budget_mode: given(fields.budget_mode || null),
})

function PersonForm({ edited, ...callbacks }: FormCallbacks<Person> & { readonly edited: Person }) {
  const { bind, submit } = useForm({
    edited,
    fieldsOf,
    read,
    reread: ({ id }) => get('/gateway/v1/people/{id}', { id }),
    save: (changes) => send('PATCH /gateway/v1/people/{id}', { id: edited.id }, changes),
  })
  return (
    <FormDialog title="Change limits" submit="Save" isWide {...callbacks} onSubmit={submit}>
      <p>All keys and devices of the person share these limits.</p>
      <div class="columns">
        <LimitFields bind={bind} />
        <ModeField {...bind('budget_mode')} />
      </div>
    </FormDialog>
  )
}

function MoveForm({ of: person, ...callbacks }: FormCallbacks<unknown> & { readonly of: Person }) {
  const [account, setAccount] = useState<string | null>(null)
  return (
    <FormDialog
      title="Move to another account"
      submit="Move"
      isDangerous
      isReady={account !== null}
      {...callbacks}
      onSubmit={() => send('POST /gateway/v1/people/{id}/move', { id: person.id }, { account })}
    >
      <p>
        The person's keys are revoked, sessions end, and the person gets a new budget. A rule of{' '}
        <code>sign_in.rules</code> must name the new account, or the next sign-in is refused.
      </p>
      <RecordField label="Account" path="/gateway/v1/accounts" id={account} onChoose={setAccount} />
    </FormDialog>
  )
}
