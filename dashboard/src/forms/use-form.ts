import { useMemo, useState } from 'preact/hooks'
import { ApiError } from '../api.ts'
import { changesOf, type Readings } from './changes.ts'

/** A field: its text or choice, and why it is wrong. */
export interface Bound<Value> {
  readonly value: Value
  readonly problem?: string | undefined
  onInput(value: Value): void
}

type Fields = Readonly<Record<string, unknown>>

interface FormProps<Made, Saved extends Made, Of extends Fields> {
  /** The record that is edited. Null: a new one. */
  readonly edited: Saved | null
  /** Reads the edited record again. */
  reread?(saved: Saved): Promise<Saved>
  /** Sends what has changed. `attempt`: the same for every attempt with the same fields. */
  save(changes: Readonly<Record<string, unknown>>, attempt: string): Promise<Made>
  fieldsOf(saved: Saved | null): Of
  /** The fields as members of the request. The members have the names of the API; so have most fields. */
  read(fields: Of, saved: Saved | null): Readings
}

/**
 * The state of a form. A problem of a member is shown beside the field of the same name: text that cannot be read, a
 * refusal by the gateway, or a change that somebody else has made since the form was opened.
 */
export function useForm<Made, Saved extends Made, Of extends Fields>({
  edited,
  reread,
  save,
  fieldsOf,
  read,
}: FormProps<Made, Saved, Of>) {
  // The page may read the record again while the form is open; the form compares with what its user saw.
  const [seen, setSeen] = useState(edited)
  const [fields, setFields] = useState(() => fieldsOf(edited))
  const [told, setTold] = useState<Readonly<Record<string, string>>>({})
  const [isTried, setTried] = useState(false)
  const attempt = useMemo(() => crypto.getRandomValues(new Uint32Array(4)).join('-'), [fields])
  const readings = read(fields, seen)
  const start = fieldsOf(seen)
  const changes = changesOf(seen === null ? {} : read(start, seen), readings)

  function problemOf(name: string): string | undefined {
    const reading = readings[name]
    const isTouched = isTried || fields[name] !== start[name]
    if (reading !== undefined && 'problem' in reading) return isTouched ? reading.problem : undefined
    return told[name]
  }
  const bind = <Name extends keyof Of & string>(name: Name): Bound<Of[Name]> => ({
    value: fields[name],
    problem: problemOf(name),
    onInput(value) {
      setTold(({ [name]: _, ...rest }) => rest)
      setFields((before) => ({ ...before, [name]: value }))
    },
  })

  /** Whether somebody else has changed a member that this form changes too, since the form was opened. */
  function hasConflict(saved: Saved, now: Saved): boolean {
    const theirs = changesOf(read(fieldsOf(saved), saved), read(fieldsOf(now), now))
    const both = Object.keys(changes).filter((name) => name in theirs)
    if (both.length === 0) return false
    setSeen(now)
    setFields(rebased(fields, fieldsOf(saved), fieldsOf(now)))
    setTold(
      Object.fromEntries(
        both.map((name) => [
          name,
          `Somebody else has changed this meanwhile${inWords(theirs[name])}. Save again to replace it.`,
        ]),
      ),
    )
    return true
  }

  /** Sends the changes. Undefined: a field has a problem, and nothing has changed. */
  async function submit(): Promise<Made | undefined> {
    setTried(true)
    if (Object.values(readings).some((reading) => 'problem' in reading)) return undefined
    if (seen !== null && Object.keys(changes).length === 0) return seen
    if (seen !== null && reread !== undefined && hasConflict(seen, await reread(seen))) return undefined
    try {
      return await save(changes, attempt)
    } catch (error) {
      // A refusal that names a member is shown beside its field; every other one is the form's.
      if (!(error instanceof ApiError)) throw error
      const { param } = error.details
      if (param == null || !(param in fields)) throw error
      setTold({ [param]: error.message })
      return undefined
    }
  }
  return { fields, bind, problemOf, submit }
}

/** The fields that the user has not touched follow the record. */
function rebased<Of extends Fields>(typed: Of, seen: Of, now: Of): Of {
  const isUntouched = (name: string) => JSON.stringify(typed[name]) === JSON.stringify(seen[name])
  const names = Object.keys(typed)
  return Object.fromEntries(names.map((name) => [name, (isUntouched(name) ? now : typed)[name]])) as Of
}

/** What somebody else has written, if it fits in a sentence. */
function inWords(value: unknown): string {
  if (value === null) return ' to nothing'
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length > 60 ? '' : ` to ${text}`
}
