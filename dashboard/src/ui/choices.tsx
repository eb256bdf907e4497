import type { ComponentChildren } from 'preact'
import { inAccount } from '../api.ts'
import { setQuery } from '../router.tsx'

interface ChoicesProps<Option extends string> {
  /** The subject of the choice, for screen readers. */
  readonly title: string
  readonly options: readonly Option[]
  isChosen(option: Option): boolean
  onChoose(option: Option): void
}

/** A few words of which one is chosen, or several. */
export function Choices<Option extends string>({ title, options, isChosen, onChoose }: ChoicesProps<Option>) {
  return (
    <fieldset class="choice">
      <legend class="unseen">{title}</legend>
      {options.map((option) => (
        <button key={option} type="button" aria-pressed={isChosen(option)} onClick={() => onChoose(option)}>
          {option}
        </button>
      ))}
    </fieldset>
  )
}

/** A control of a filter with its title above it. */
export function Labelled({
  title,
  children,
}: {
  readonly title: string
  readonly children: ComponentChildren
}) {
  return (
    <div class="labelled">
      <span aria-hidden="true">{title}</span>
      {children}
    </div>
  )
}

/** Two days in the URL. */
export function DateRange({ start, end }: { readonly start: string | null; readonly end: string | null }) {
  const day = (name: string, title: string, value: string | null) => (
    <input
      type="date"
      aria-label={title}
      value={value?.slice(0, 10) ?? ''}
      onChange={(event) => setQuery({ [name]: event.currentTarget.value, after: null })}
    />
  )
  return (
    <Labelled title="Days, UTC">
      <span class="dates">
        {day('start', 'From', start)}
        {' – '}
        {day('end', 'To', end)}
      </span>
    </Labelled>
  )
}

interface FilterProps {
  readonly name: string
  readonly title: string
  readonly query: URLSearchParams
}

/** A filter of a list, in the URL: one of some options. */
export function Select({
  name,
  title,
  options,
  query,
}: FilterProps & { readonly options: readonly (string | readonly [string, string])[] }) {
  return (
    <label class="labelled">
      <span>{title}</span>
      <select
        value={query.get(name) ?? ''}
        onChange={(event) => setQuery({ [name]: event.currentTarget.value, after: null })}
      >
        <option value="">any</option>
        {options.map((option) => {
          const [value, words] = typeof option === 'string' ? [option, option.replaceAll('_', ' ')] : option
          return (
            <option key={value} value={value}>
              {words}
            </option>
          )
        })}
      </select>
    </label>
  )
}

/** A filter of a list, in the URL: a text. */
export function TextFilter({ name, title, query }: FilterProps) {
  return (
    <label class="labelled">
      <span>{title}</span>
      <input
        class="short"
        value={query.get(name) ?? ''}
        onChange={(event) => setQuery({ [name]: event.currentTarget.value.trim(), after: null })}
      />
    </label>
  )
}

interface SearchProps {
  readonly title: string
  readonly placeholder: string
  readonly value: string
}

/** The search of a list, in the URL; a new search begins on the first page. */
export function Search({ title, placeholder, value }: SearchProps) {
  return (
    <input
      type="search"
      aria-label={title}
      placeholder={placeholder}
      value={value}
      onInput={(event) => setQuery({ search: event.currentTarget.value, after: null, page: null }, 'replace')}
    />
  )
}

/** A link that saves a list of the API as a file. */
export function Download({ path, name }: { readonly path: string; readonly name: string }) {
  return (
    <a class="button" href={inAccount(path)} download={name}>
      {name.slice(name.lastIndexOf('.') + 1).toUpperCase()}
    </a>
  )
}
