import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Bound } from '../forms/use-form.ts'
import s from './fields.module.css'

let fields = 0

interface FieldProps {
  readonly label: ComponentChildren
  readonly hint?: ComponentChildren
  /** Why the value is wrong. It takes the place of the hint. */
  readonly problem?: string | undefined
}

type FieldOf = FieldProps & { children(id: string): ComponentChildren }

export function Field({ label, hint, problem, children }: FieldOf) {
  const [id] = useState(() => `field-${++fields}`)
  return (
    <div class={s.field}>
      <label htmlFor={id}>{label}</label>
      {children(id)}
      <Hint hint={hint} problem={problem} />
    </div>
  )
}

export function Hint({ hint, problem }: Pick<FieldProps, 'hint' | 'problem'>) {
  if (problem !== undefined)
    return (
      <small class="bad" role="alert">
        {problem}
      </small>
    )
  return hint === undefined ? null : <small class="quiet">{hint}</small>
}

type TextProps = FieldProps & Bound<string>

interface LineProps extends TextProps {
  readonly type?: 'text' | 'url' | 'password' | 'datetime-local'
  readonly isRequired?: boolean
  readonly step?: 'any'
  readonly placeholder?: string
  readonly maxLength?: number
  readonly autoComplete?: 'current-password'
}

export function TextField({ label, hint, problem, onInput, type, isRequired, ...rest }: LineProps) {
  return (
    <Field label={label} hint={hint} problem={problem}>
      {(id) => (
        <input
          autoComplete="off"
          spellcheck={false}
          {...rest}
          id={id}
          // Preact's types differ by input type, but these attributes are the same for all of them.
          type={type as 'text'}
          required={isRequired ?? false}
          aria-invalid={problem !== undefined}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  )
}

/** An amount in dollars. */
export const AmountField = (props: TextProps) => <TextField {...props} placeholder="$" />

/** A time in UTC, to the second. */
export const InstantField = (props: TextProps) => <TextField {...props} type="datetime-local" step="any" />

interface SelectProps extends TextProps {
  readonly options: Readonly<Record<string, string>>
}

export function SelectField({ label, hint, problem, value, options, onInput }: SelectProps) {
  return (
    <Field label={label} hint={hint} problem={problem}>
      {(id) => (
        <select id={id} value={value} onChange={(event) => onInput(event.currentTarget.value)}>
          {Object.entries(options).map(([option, words]) => (
            <option key={option} value={option}>
              {words}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

export function CheckField({ label, value, onInput }: Bound<boolean> & Pick<FieldProps, 'label'>) {
  return (
    <label class={s.check}>
      <input type="checkbox" checked={value} onChange={(event) => onInput(event.currentTarget.checked)} />{' '}
      {label}
    </label>
  )
}

type Metadata = Readonly<Record<string, string>>

/** A pair without a name stays in this component: the user may still type the name. */
export function MetadataField({ value: metadata, problem, onInput }: Bound<Metadata>) {
  const [pairs, setPairs] = useState(() => Object.entries(metadata))
  const rows = [...pairs, ['', ''] as [string, string]]
  function set(at: number, pair: [string, string]): void {
    const next = rows.with(at, pair).filter(([name, value]) => name !== '' || value !== '')
    setPairs(next)
    onInput(
      Object.fromEntries(next.map(([name, value]) => [name.trim(), value]).filter(([name]) => name !== '')),
    )
  }
  return (
    <fieldset class={s.field}>
      <legend>Metadata</legend>
      {rows.map(([name, value], i) => (
        <span key={i} class={s.pair}>
          <input
            aria-label={`Metadata field ${i + 1}`}
            placeholder="team"
            value={name}
            onInput={(event) => set(i, [event.currentTarget.value, value])}
          />
          <input
            aria-label={`Metadata value ${i + 1}`}
            placeholder="web"
            value={value}
            onInput={(event) => set(i, [name, event.currentTarget.value])}
          />
        </span>
      ))}
      <Hint hint="Search by it, for example metadata.team:web" problem={problem} />
    </fieldset>
  )
}
