import type { z } from 'zod'
import { type Refusal, refuse } from '../kernel/errors.ts'

export type Checked<T> =
  | { readonly kind: 'ok'; readonly value: T }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** How a refusal speaks of what was checked. */
export type InputKind = 'body' | 'query'

const UNKNOWN = { body: 'is not a field of this request', query: 'is not a parameter of this endpoint' }

/** Checks what came against its schema; a failure names the first field at fault and what it should be. */
export function checkInput<T>(schema: z.ZodType<T>, input: unknown, kind: InputKind): Checked<T> {
  const parsed = schema.safeParse(input)
  if (parsed.success) return { kind: 'ok', value: parsed.data }
  const [issue] = parsed.error.issues
  if (issue?.code === 'unrecognized_keys') {
    const [field = ''] = issue.keys
    return refused(`${field} ${UNKNOWN[kind]}.`, field)
  }
  const field = issue?.path.join('.') ?? ''
  if (field === '') return refused('The body must be a JSON object.')
  return refused(
    isMissing(input, issue?.path ?? []) ? `${field} is required.` : (issue?.message ?? ''),
    field,
  )
}

function isMissing(input: unknown, path: readonly PropertyKey[]): boolean {
  let value = input
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return true
    value = (value as Record<PropertyKey, unknown>)[name]
  }
  return false
}

export function refused(message: string, param?: string): { kind: 'refused'; refusal: Refusal } {
  return { kind: 'refused', refusal: refuse('bad_request', message, param === undefined ? {} : { param }) }
}
