import { useState } from 'preact/hooks'
import { ApiError, type PricePush, send } from '../api.ts'
import { plural } from '../format.ts'
import { type FormCallbacks, FormDialog } from '../parts/dialog.tsx'
import { CheckField, Field, Hint } from '../parts/fields.tsx'
import { Table } from '../parts/table.tsx'

/** Pushes a list of prices from a file, after showing what it changes. */
export function PushForm(callbacks: FormCallbacks<unknown>) {
  const [list, setList] = useState<object | null>(null)
  const [problem, setProblem] = useState<string>()
  const [preview, setPreview] = useState<PricePush | null>(null)
  /** Why the gateway wants to be told that large changes are meant. */
  const [doubt, setDoubt] = useState<string | null>(null)
  const [force, setForce] = useState(false)

  async function read(file: File | undefined): Promise<void> {
    setPreview(null)
    setDoubt(null)
    setForce(false)
    try {
      const content: unknown = JSON.parse((await file?.text()) ?? '')
      setList(typeof content === 'object' && !Array.isArray(content) ? content : null)
      setProblem(undefined)
    } catch {
      setList(null)
      setProblem('This file is not JSON. Choose a list of prices.')
    }
  }
  /** The first attempt changes nothing. */
  async function submit(): Promise<PricePush | undefined> {
    try {
      const answer = await send(
        'POST /gateway/v1/prices/push',
        {},
        { ...list, force, dry_run: preview === null },
      )
      if (preview !== null) return answer
      setPreview(answer)
    } catch (error) {
      if (!(error instanceof ApiError) || error.details.param !== 'force') throw error
      setDoubt(error.message)
    }
    return undefined
  }
  return (
    <FormDialog
      title="Push a list of prices"
      submit={preview === null ? 'Show the differences' : 'Push'}
      isWide
      isReady={list !== null && (doubt === null || force) && (preview === null || !isEmpty(preview))}
      {...callbacks}
      onSubmit={submit}
    >
      <p>
        A list has <code>revision</code>, <code>base</code> and <code>changes</code>, as every release
        contains it. Nothing changes before you have seen the differences.
      </p>
      <Field label="File">
        {(id) => (
          <input
            id={id}
            type="file"
            accept=".json,application/json"
            onChange={(event) => void read(event.currentTarget.files?.[0])}
          />
        )}
      </Field>
      <Hint problem={problem} />
      {doubt !== null && <CheckField label={`Push anyway. ${doubt}`} value={force} onInput={setForce} />}
      {preview !== null && <Differences of={preview} />}
    </FormDialog>
  )
}

const isEmpty = ({ added, changed }: PricePush) => added.length + changed.length === 0

function Differences({ of: push }: { readonly of: PricePush }) {
  const { added, changed, revision } = push
  if (isEmpty(push)) return <p role="status">The gateway has all prices of this list already.</p>
  return (
    <div role="status">
      <p>
        Revision {revision}: {plural(added.length, 'new model')}, {plural(changed.length, 'changed rate')}.
      </p>
      {added.length > 0 && <p class="name">New: {added.join(', ')}</p>}
      {changed.length > 0 && (
        <Table
          caption="Changed rates"
          rows={changed.map((each) => ({ ...each, id: `${each.model} ${each.unit}` }))}
          columns={[
            { title: 'Model', lead: 'left', cell: ({ model }) => model },
            { title: 'Rate', cell: ({ unit }) => unit },
            { title: 'Now', isFigure: true, cell: ({ old }) => old ?? '–' },
            { title: 'Then', isFigure: true, lead: 'right', cell: (each) => <b>{each.new ?? '–'}</b> },
          ]}
        />
      )}
    </div>
  )
}
