import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { PriceBook } from '../api.ts'
import { useResource } from '../data.ts'
import { parseAmount } from '../format.ts'

interface Bound<Value> {
  readonly value: Value
  onInput(value: Value): void
}

export function useFields<Fields extends object>(initial: () => Fields) {
  const [fields, setFields] = useState(initial)
  const bind = <Name extends keyof Fields>(name: Name): Bound<Fields[Name]> => ({
    value: fields[name],
    onInput: (value) => setFields((before) => ({ ...before, [name]: value })),
  })
  return { fields, bind }
}

let fields = 0

interface FieldProps {
  readonly label: ComponentChildren
  readonly hint?: ComponentChildren
}

export function Field({ label, hint, children }: FieldProps & { children(id: string): ComponentChildren }) {
  const [id] = useState(() => `field-${++fields}`)
  return (
    <div class="field">
      <label htmlFor={id}>{label}</label>
      {children(id)}
      {hint !== undefined && <small class="quiet">{hint}</small>}
    </div>
  )
}

type TextProps = FieldProps & Bound<string>

interface LineProps extends TextProps {
  readonly type?: 'text' | 'url' | 'password' | 'datetime-local'
  readonly isRequired?: boolean
  readonly isWrong?: boolean
  readonly placeholder?: string
  readonly maxLength?: number
  readonly autoComplete?: 'current-password'
}

export function TextField({ label, hint, onInput, type, isRequired, isWrong, ...rest }: LineProps) {
  return (
    <Field label={label} hint={hint}>
      {(id) => (
        <input
          autoComplete="off"
          spellcheck={false}
          {...rest}
          id={id}
          // Preact's types differ by input type, but these attributes are the same for all of them.
          type={type as 'text'}
          required={isRequired ?? false}
          aria-invalid={isWrong ?? false}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  )
}

/** An amount in dollars. An invalid amount shows an error below the field. */
export function AmountField({ hint, ...rest }: TextProps) {
  const isWrong = Number.isNaN(parseAmount(rest.value))
  const reason = (
    <span class="bad" role="alert">
      Write an amount such as 50, $50 or 1,000.50, with at most nine decimals.
    </span>
  )
  return <TextField {...rest} hint={isWrong ? reason : hint} isWrong={isWrong} placeholder="$" />
}

interface SelectProps extends TextProps {
  readonly options: Readonly<Record<string, string>>
}

export function SelectField({ label, hint, value, options, onInput }: SelectProps) {
  return (
    <Field label={label} hint={hint}>
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
    <label class="check">
      <input type="checkbox" checked={value} onChange={(event) => onInput(event.currentTarget.checked)} />{' '}
      {label}
    </label>
  )
}

/** A pair without a name stays in this component: the user may still type the name. */
export function MetadataField({ value: metadata, onInput }: Bound<Readonly<Record<string, string>>>) {
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
    <fieldset class="field">
      <legend>Metadata</legend>
      {rows.map(([name, value], i) => (
        <span key={i} class="pair">
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
      <small class="quiet">Search by it, for example metadata.team:web</small>
    </fieldset>
  )
}

/** Chooses models and patterns of the price book. No choice means every model. */
export function ModelsField({ value: chosen, onInput }: Bound<readonly string[]>) {
  const [search, setSearch] = useState('')
  const { value: book } = useResource<PriceBook>('/gateway/v1/prices')
  const models = (book?.models ?? []).filter(({ retired }) => !retired).map(({ id }) => id)
  const matching = (pattern: string) => models.filter((id) => id.startsWith(pattern.slice(0, -1))).length
  const families = [...new Set(models.map((id) => `${id.split('-')[0]}-*`))].filter(
    (pattern) => matching(pattern) > 2,
  )
  const typed = search.trim().toLowerCase()
  const isPattern = typed.length > 1 && typed.endsWith('*')
  const needle = typed.replace(/\*$/, '')
  const offered = [...(isPattern ? [typed] : []), ...families, ...models]
    .filter((name, i, all) => name.includes(needle) && all.indexOf(name) === i)
    .slice(0, 60)
  const toggle = (name: string) =>
    onInput(chosen.includes(name) ? chosen.filter((each) => each !== name) : [...chosen, name])
  return (
    <fieldset class="field models">
      <legend>
        Models <span class="quiet">{chosen.length === 0 && 'all are allowed'}</span>
      </legend>
      <span class="buttons">
        {chosen.map((name) => (
          <button key={name} type="button" aria-label={`Remove ${name}`} onClick={() => toggle(name)}>
            <code>{name}</code> ×
          </button>
        ))}
      </span>
      <input
        type="search"
        aria-label="Find a model"
        placeholder="A model, or a pattern: claude-*"
        value={search}
        onInput={(event) => setSearch(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || typed === '') return
          event.preventDefault()
          const found = isPattern ? typed : (offered.find((name) => !chosen.includes(name)) ?? typed)
          toggle(found)
          setSearch('')
        }}
      />
      <div class="options">
        {offered.map((name) => (
          <CheckField
            key={name}
            label={
              <>
                <code>{name}</code> {name.endsWith('*') && <span class="quiet">{matching(name)} models</span>}
              </>
            }
            value={chosen.includes(name)}
            onInput={() => toggle(name)}
          />
        ))}
        {offered.length === 0 && <span class="quiet">No model in the price book matches.</span>}
      </div>
    </fieldset>
  )
}
