/** How tables are written down in `tables.ts`, and how that is read. */

/** A question mark: the column may be null. */
export type ColumnKind = 'text' | 'integer' | 'flag' | 'json' | 'bytes'
export type ColumnText = `${ColumnKind}${'?' | ''}${` = ${string}` | ` -> ${string}` | ''}`

export type TableLocation = 'main' | 'bodies' | 'postgres'

export interface TableParts {
  readonly columns: Readonly<Record<string, ColumnText>>
  readonly key: string
  /** Columns by the name of the index; `unique` and `where` are written as in SQL. */
  readonly indexes?: Readonly<Record<string, string>>
  readonly checks?: readonly string[]
  readonly isHot?: boolean
  readonly isWide?: boolean
  readonly location?: TableLocation
  readonly isExported?: boolean
}

export interface Column {
  readonly name: string
  readonly kind: ColumnKind
  readonly isNullable: boolean
  /** The default in SQL that both stores understand: `0`, `false`, `''`. */
  readonly defaultSql: string | null
  /** The table whose `id` the column holds. */
  readonly references: string | null
}

export interface Index {
  readonly name: string
  readonly columns: string
  readonly isUnique: boolean
  readonly where: string | null
}

export function parseColumn(name: string, text: ColumnText): Column {
  const [type = '', defaultSql = null] = text.split(' = ')
  const [kind = '', references = null] = type.split(' -> ')
  const isNullable = kind.endsWith('?')
  return { name, kind: kind.replace('?', '') as ColumnKind, isNullable, defaultSql, references }
}

export function parseIndex(name: string, text: string): Index {
  const [head = '', where = null] = text.split(' where ')
  const isUnique = head.startsWith('unique ')
  return { name, columns: isUnique ? head.slice('unique '.length) : head, isUnique, where }
}
