import type { Answers } from '../../../src/api/answers.ts'
import { EVENT_TYPES } from '../../../src/kernel/vocabulary.ts'
import { get, send, type Webhook } from '../api.ts'
import { given } from '../forms/readings.ts'
import { useForm } from '../forms/use-form.ts'
import { type FormCallbacks, FormDialog } from '../parts/dialog.tsx'
import { CheckField, Hint, SelectField, TextField } from '../parts/fields.tsx'

/** All events except the test, which is sent on demand only. */
const EVENTS: readonly string[] = EVENT_TYPES.filter((type) => type !== 'webhook.test')

const fieldsOf = (webhook: Webhook | null) => ({
  url: webhook?.url ?? '',
  description: webhook?.description ?? '',
  format: webhook?.format ?? 'standard',
  events: webhook?.events ?? ['key.budget.threshold', 'key.budget.exceeded'],
})

const read = ({ url, description, format, events }: ReturnType<typeof fieldsOf>) => ({
  url: given(url.trim()),
  description: given(description),
  format: given(format),
  events: events.length === 0 ? { problem: 'Choose at least one event.' } : given(events),
})

type SavedWebhook = Answers['POST /gateway/v1/webhooks']

interface WebhookFormProps extends FormCallbacks<SavedWebhook> {
  readonly edited: Webhook | null
}

export function WebhookForm({ edited, ...callbacks }: WebhookFormProps) {
  const { bind, submit } = useForm({
    edited,
    fieldsOf,
    read,
    reread: ({ id }) => get('/gateway/v1/webhooks/{id}', { id }),
    save: (changes) =>
      edited === null
        ? send('POST /gateway/v1/webhooks', {}, changes)
        : send('PATCH /gateway/v1/webhooks/{id}', { id: edited.id }, changes),
  })
  const { value: format, onInput: setFormat, ...formatField } = bind('format')
  const { value: events, onInput: setEvents, problem } = bind('events')
  const isAll = events.includes('*')
  const toggle = (event: string, isOn: boolean) =>
    setEvents(isOn ? [...events, event] : events.filter((each) => each !== event))
  return (
    <FormDialog
      title={edited === null ? 'New webhook' : 'Edit webhook'}
      submit={edited === null ? 'Create webhook' : 'Save'}
      isWide
      {...callbacks}
      onSubmit={submit}
    >
      <TextField label="URL" type="url" placeholder="https://…" isRequired {...bind('url')} />
      <div class="columns">
        <SelectField
          label="Format"
          hint="Slack also works for services that accept Slack's incoming webhooks."
          options={{ standard: 'JSON, signed (Standard Webhooks)', slack: 'A message for Slack' }}
          {...formatField}
          value={format}
          onInput={(each) => setFormat(each as Webhook['format'])}
        />
        <TextField label="Description" maxLength={200} {...bind('description')} />
      </div>
      <fieldset>
        <legend>Events</legend>
        <CheckField label="All events" value={isAll} onInput={(isOn) => setEvents(isOn ? ['*'] : [])} />
        <div class="columns checks">
          {!isAll &&
            EVENTS.map((event) => (
              <CheckField
                key={event}
                label={event}
                value={events.includes(event)}
                onInput={(isOn) => toggle(event, isOn)}
              />
            ))}
        </div>
        <Hint problem={problem} />
      </fieldset>
    </FormDialog>
  )
}
