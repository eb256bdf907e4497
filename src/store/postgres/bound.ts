/** The values of a statement that is put together from parts: each part names its own and need not count those before. */
export class Bound {
  readonly values: unknown[] = []

  /** The value's name in the statement, with its type: where only a cast would tell, PostgreSQL takes it for text. */
  as(type: 'text' | 'bigint' | 'boolean' | 'bytea' | 'jsonb', value: unknown): string {
    return `$${this.values.push(value)}::${type}`
  }

  /** A JS number for a column of integers. */
  integer(value: number | null): string {
    return this.as('bigint', value === null ? null : Math.trunc(value))
  }
}
