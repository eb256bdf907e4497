import type { ComponentChildren } from 'preact'
import type { GetAnswers } from '../../../src/api/answers.ts'
import type { ListOf, Params } from '../api.ts'
import { type Resource, useResource } from '../data.ts'
import { capitalize } from '../format.ts'
import { setQuery } from '../router.tsx'
import { Choices, Search } from './choices.tsx'
import { Loaded } from './states.tsx'
import { Table, type TableProps } from './table.tsx'

const ROWS = 100

export interface Pages<List> extends Resource<List> {
  readonly after: string | null
}

type ListPath = {
  [Path in keyof GetAnswers]: GetAnswers[Path] extends ListOf<object> ? Path : never
}[keyof GetAnswers]

/** Reads the page of a list that the URL names. Only the first page is read again and again: new records come first. */
export function usePages<Path extends ListPath>(
  path: Path,
  query: URLSearchParams,
  filters: Params<Path>,
): Pages<GetAnswers[Path]> {
  const after = query.get('after')
  const params = { ...filters, limit: ROWS, after }
  return { ...useResource(path, params, after === null ? 5_000 : null), after }
}

interface ListedProps<Row> extends Omit<TableProps<Row>, 'rows' | 'after' | 'next' | 'total'> {
  readonly of: Pages<ListOf<Row>>
  readonly lines?: number
  /** Shown in place of a list without records. */
  readonly empty: ComponentChildren
  /** Orders the rows for the parameter `sort`. Only a list that one request has read can be ordered here. */
  order?(rows: readonly Row[], sorted: string | undefined): readonly Row[]
  /** The last row. `isAll`: the rows are the whole list. */
  totalOf?(rows: readonly Row[], isAll: boolean): TableProps<Row>['total']
}

/** A list of records, page by page. */
export function Listed<Row extends { readonly id: string }>({
  of,
  lines,
  columns,
  sorted,
  empty,
  order,
  totalOf,
  ...table
}: ListedProps<Row>) {
  return (
    <Loaded resource={of} lines={lines ?? 5}>
      {({ data, next }) => {
        const isAll = next === null && of.after === null
        if (isAll && data.length === 0) return empty
        return (
          <Table
            {...table}
            columns={isAll ? columns : columns.map((column) => ({ ...column, sort: undefined }))}
            sorted={sorted}
            rows={isAll && order !== undefined ? order(data, sorted) : data}
            total={totalOf?.(data, isAll)}
            after={of.after}
            next={next}
          />
        )
      }}
    </Loaded>
  )
}

type Sorts<Row> = Readonly<Record<string, (row: Row) => number | string>>

/** Compares rows for the parameter `sort`; without it, by `usual`, the largest first. */
export function comparison<Row>(sorts: Sorts<Row>, usual: (row: Row) => number, sorted = '') {
  const by = sorts[sorted.replace('-', '')] ?? usual
  const sign = sorted !== '' && !sorted.startsWith('-') ? 1 : -1
  return (a: Row, b: Row) => {
    const [one, other] = [by(a), by(b)]
    return one === other ? 0 : one < other ? -sign : sign
  }
}

interface ListFilterProps {
  readonly title: string
  readonly placeholder: string
  readonly statuses: readonly string[]
  readonly query: URLSearchParams
}

/** The search and the status of a list. The first status is the default. */
export function ListFilter({ title, placeholder, statuses, query }: ListFilterProps) {
  const [usual] = statuses
  const status = query.get('status') ?? usual
  return (
    <div class="filters">
      <Search title={title} placeholder={placeholder} value={query.get('search') ?? ''} />
      <Choices
        title="Status"
        options={statuses}
        nameOf={capitalize}
        isChosen={(each) => each === status}
        onChoose={(each) => setQuery({ status: each === usual ? null : each, after: null })}
      />
    </div>
  )
}

/** The parameters of that filter. */
export function filterOf(query: URLSearchParams, usual = 'all') {
  const status = query.get('status') ?? usual
  return { search: query.get('search'), status: status === 'all' ? null : status }
}
