import type { ColumnKind } from '../../../ledger/call-columns.ts'

/** The settings of a function that is part of another, or of a command that has time. */
export const PLAN_SETTINGS = `
  SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off
  SET enable_hashjoin = off
  SET enable_mergejoin = off`

/**
 * The settings of a function of the hot path. Its plans are made once and find rows by their index, however small the
 * table was when they were made: a month begins empty, and a plan that reads all of it would be kept while it grows. The
 * lock timeout ends the function before the node stops waiting. Each setting is for the function alone, because behind a
 * pooler the connection is not ours to set anything on.
 */
export const HOT_SETTINGS = `
  SET lock_timeout = '1500ms'
  ${PLAN_SETTINGS}`

const TYPES = { text: 'text', count: 'bigint', flag: 'boolean', nanos: 'bigint' } as const

/** Columns of a call in the form of `jsonb_to_record`, by their names in JSON. */
export function inJson(columns: readonly { readonly name: string; readonly kind: ColumnKind }[]): string {
  const typeOf = (kind: ColumnKind) => TYPES[kind.replace('?', '') as keyof typeof TYPES]
  return columns.map(({ name, kind }) => `"${name}" ${typeOf(kind)}`).join(', ')
}
