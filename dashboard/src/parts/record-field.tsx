import { useState } from 'preact/hooks'
import { useResource } from '../data.ts'
import { Field } from './fields.tsx'

interface Named {
  readonly id: string
  readonly name: string
  readonly last4?: string
  readonly email?: string | null
}

export type RecordPath = '/v1/keys' | '/gateway/v1/people' | '/gateway/v1/accounts'

interface RecordFieldProps {
  readonly label: string
  /** The list that is searched: `/v1/keys`. */
  readonly path: RecordPath
  /** The id of the chosen record. */
  readonly id: string | null
  onChoose(id: string | null): void
}

/** Two records may have the same name. */
const wordsOf = ({ name, last4, email }: Named) =>
  [name, last4 === undefined ? email : `…${last4}`].filter(Boolean).join(' ')

/** Chooses a record by typing a part of its name. The list is searched, never read as a whole. */
export function RecordField({ label, path, id, onChoose }: RecordFieldProps) {
  const [typed, setTyped] = useState<string | null>(null)
  const chosen = useResource(`${path}/{id}`, { id }).value
  const search = typed?.trim() ?? ''
  const found = useResource(path, search === '' ? null : { search, limit: 20 })
  const offered = search === '' ? [] : (found.value?.data ?? [])
  function choose(record: Named | undefined): void {
    setTyped(null)
    onChoose(record?.id ?? null)
  }
  function onInput(text: string): void {
    const record = offered.find((each) => wordsOf(each) === text)
    if (record !== undefined || text === '') choose(record)
    else setTyped(text)
  }
  return (
    <Field label={label}>
      {(field) => (
        <>
          <input
            id={field}
            list={`${field}-found`}
            autoComplete="off"
            placeholder="Any"
            value={typed ?? (id === null ? '' : chosen?.id === id ? wordsOf(chosen) : id)}
            onInput={(event) => onInput(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key !== 'Enter' || offered[0] === undefined) return
              event.preventDefault()
              choose(offered[0])
            }}
          />
          <datalist id={`${field}-found`}>
            {offered.map((record) => (
              <option key={record.id} value={wordsOf(record)} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  )
}
