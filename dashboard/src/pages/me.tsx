import { useState } from 'preact/hooks'
import { type CreatedKey, get, type Key, send } from '../api.ts'
import { useResource } from '../data.ts'
import { given, instantText, readInstant, readName } from '../forms/readings.ts'
import { useForm } from '../forms/use-form.ts'
import { Button } from '../parts/button.tsx'
import { type FormCallbacks, FormDialog } from '../parts/dialog.tsx'
import { InstantField, TextField } from '../parts/fields.tsx'
import { tightestCap } from '../parts/figures.tsx'
import { PersonDetails } from '../parts/person-details.tsx'
import { ClientSetup, NewKeyDialog } from '../parts/secret-dialog.tsx'
import { Heading, Loaded } from '../parts/states.tsx'

/** The start page of a member: own keys, budget, spend, and the setup of clients. */
export function MePage({ id }: { readonly id: string }) {
  const person = useResource('/gateway/v1/people/{id}', { id }, 3_000)
  const [isCreating, setCreating] = useState(false)
  const create = (title: string) => <Button title={title} kind="primary" onClick={() => setCreating(true)} />
  return (
    <Loaded resource={person} lines={6}>
      {(value) => (
        <>
          <Heading title="My keys" state={<span class="name quiet">{value.email || value.name}</span>}>
            {create('New key')}
          </Heading>
          {tightestCap(value)?.isSpent && (
            <p class="bad">
              You have spent your budget of the {tightestCap(value)?.period}. Paid calls are refused.
            </p>
          )}
          <PersonDetails of={value} create={create('Create your first key')} />
          <h2>Set up your client</h2>
          <p class="quiet">The lines of a new key contain the key itself. It is shown only once.</p>
          <ClientSetup secret="svc_live_…" />
          {isCreating && (
            <OwnKeyForm
              edited={null}
              onClose={() => setCreating(false)}
              onDone={() => {
                setCreating(false)
                person.refresh()
              }}
            />
          )}
        </>
      )}
    </Loaded>
  )
}

const fieldsOf = (key: Key | null) => ({ name: key?.name ?? '', expires_at: instantText(key?.expires_at) })

/** A person names a key, and may let it expire earlier. The account decides the rest. */
export function OwnKeyForm({ edited, ...callbacks }: FormCallbacks<Key> & { readonly edited: Key | null }) {
  const isNew = edited === null
  const { bind, submit } = useForm({
    edited,
    fieldsOf,
    reread: ({ id }) => get('/v1/keys/{id}', { id }),
    save: (changes) =>
      edited === null
        ? send('POST /v1/keys', {}, { ...changes, person: 'me' })
        : send('PATCH /v1/keys/{id}', { id: edited.id }, changes),
    read: ({ name, expires_at }) => ({
      name: readName(name),
      expires_at: isNew && expires_at === '' ? given(undefined) : readInstant(expires_at),
    }),
  })
  const [created, setCreated] = useState<CreatedKey | null>(null)
  if (created !== null) return <NewKeyDialog of={created} onDone={callbacks.onDone} />
  return (
    <FormDialog
      title={isNew ? 'New key' : 'Rename'}
      submit={isNew ? 'Create key' : 'Save'}
      onClose={callbacks.onClose}
      onSubmit={() => submit()}
      onDone={(key) => (isNew ? setCreated(key) : callbacks.onDone(key))}
    >
      <TextField
        label="Name"
        hint="The device or tool that uses it, such as “laptop, Claude Code”."
        maxLength={120}
        isRequired
        {...bind('name')}
      />
      {isNew && (
        <InstantField
          label="Expires, UTC"
          hint="Leave empty for the longest time that your account allows."
          {...bind('expires_at')}
        />
      )}
    </FormDialog>
  )
}
