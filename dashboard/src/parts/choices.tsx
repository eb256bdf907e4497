import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { GetAnswers } from '../../../src/api/answers.ts'
import { type Params, urlOf } from '../api.ts'
import { capitalize } from '../format.ts'
import { setQuery } from '../router.tsx'
import s from './choices.module.css'
import fields from './fields.module.css'
import { Field, SelectField } from './fields.tsx'

interface ChoicesProps<Option extends string> {
  readonly title: string
  /** Whether the title is visible above the options. Otherwise only screen readers announce it. */
  readonly isTitled?: boolean
  readonly options: readonly Option[]
  nameOf?(option: Option): string
  isChosen(option: Option): boolean
  onChoose(option: Option): void
}

export function Choices<Option extends string>({
  title,
  isTitled = false,
  options,
  nameOf = (option) => option,
  isChosen,
  onChoose,
}: ChoicesProps<Option>) {
  return (
    <fieldset class={s.choice}>
      <legend class={isTitled ? undefined : 'unseen'}>{title}</legend>
      {options.map((option) => (
        <button key={option} type="button" aria-pressed={isChosen(option)} onClick={() => onChoose(option)}>
          {nameOf(option)}
        </button>
      ))}
    </fieldset>
  )
}

/** Filters of a list. On a phone, a button opens them, so that the list comes first. */
export function Filters({ set, children }: { readonly set: number; readonly children: ComponentChildren }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <button type="button" class={s.fold} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {set === 0 ? 'Filters' : `Filters (${set})`}
      </button>
      <div class={isOpen ? 'filters' : `filters ${s.folded}`}>{children}</div>
    </>
  )
}

type Day = string | null | undefined

export function DateRange({ start, end }: { readonly start: Day; readonly end: Day }) {
  const day = (name: string, title: string, value: Day) => (
    <input
      type="date"
      aria-label={title}
      value={value?.slice(0, 10) ?? ''}
      onChange={(event) => setQuery({ [name]: event.currentTarget.value, after: null })}
    />
  )
  return (
    <fieldset class={fields.field}>
      <legend>Days, UTC</legend>
      <span class={s.dates}>
        {day('start', 'From', start)}
        {' – '}
        {day('end', 'To', end)}
      </span>
    </fieldset>
  )
}

export interface FilterProps {
  readonly name: string
  readonly title: string
  readonly query: URLSearchParams
}

export function Select({
  name,
  title,
  options,
  query,
}: FilterProps & { readonly options: readonly (readonly [value: string, words: string])[] }) {
  return (
    <SelectField
      label={title}
      value={query.get(name) ?? ''}
      options={{ '': 'Any', ...Object.fromEntries(options) }}
      onInput={(value) => setQuery({ [name]: value, after: null })}
    />
  )
}

/** Values of the API as options: `in_flight` is "In flight". */
export const toOptions = (values: readonly string[]) =>
  values.map((value) => [value, capitalize(value.replaceAll('_', ' '))] as const)

/** A text filter in the URL. It applies when the input loses focus, not with each character. */
export function TextFilter({ name, title, query }: FilterProps) {
  return (
    <Field label={title}>
      {(id) => (
        <input
          id={id}
          placeholder="Any"
          value={query.get(name) ?? ''}
          onChange={(event) => setQuery({ [name]: event.currentTarget.value.trim(), after: null })}
        />
      )}
    </Field>
  )
}

interface SearchProps {
  readonly title: string
  readonly placeholder: string
  readonly value: string
  onInput?(text: string): void
}

/** A new search starts on the first page. */
const searchInUrl = (search: string) => setQuery({ search, after: null }, 'replace')

/** The search of a page, by default stored in the URL. The key `/` focuses it. */
export function Search({ title, placeholder, value, onInput = searchInUrl }: SearchProps) {
  return (
    <span class={s.search}>
      <input
        type="search"
        aria-label={title}
        placeholder={placeholder}
        value={value}
        spellcheck={false}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </span>
  )
}

interface DownloadProps<Path extends keyof GetAnswers> {
  readonly path: Path
  readonly params: Params<Path>
  /** The name of the file without its ending, which is the format. */
  readonly name: string
  readonly format?: 'csv' | 'ndjson'
}

export function Download<Path extends keyof GetAnswers>({
  path,
  params,
  name,
  format = 'csv',
}: DownloadProps<Path>) {
  return (
    <a class="button" href={urlOf(path, { ...params, format }) ?? ''} download={`${name}.${format}`}>
      {format.toUpperCase()}
    </a>
  )
}
