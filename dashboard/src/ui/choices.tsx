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

/** A filter of a list, in the URL. */
export function Select({
  name,
  options,
  query,
}: {
  readonly name: string
  readonly options: readonly string[]
  readonly query: URLSearchParams
}) {
  return (
    <select
      aria-label={name}
      value={query.get(name) ?? ''}
      onChange={(event) => setQuery({ [name]: event.currentTarget.value, after: null })}
    >
      <option value="">any {name}</option>
      {options.map((option) => (
        <option key={option} value={option}>
          {option.replaceAll('_', ' ')}
        </option>
      ))}
    </select>
  )
}
