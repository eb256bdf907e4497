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
