import type { z } from 'zod'
import { type Refusal, refuse } from '../kernel/errors.ts'

export type Checked<T> =
  | { readonly kind: 'ok'; readonly value: T }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** Checks a body against its schema; a failure names the first field at fault and what it should be. */
export function checkBody<T>(schema: z.ZodType<T>, body: unknown): Checked<T> {
  const parsed = schema.safeParse(body)
  if (parsed.success) return { kind: 'ok', value: parsed.data }
  const [issue] = parsed.error.issues
  if (issue?.code === 'unrecognized_keys') {
    const [field = ''] = issue.keys
    return refused(`${field} is not a field of this request.`, field)
  }
  const field = issue?.path.join('.') ?? ''
  if (field === '') return refused('The body must be a JSON object.')
  return refused(isMissing(body, issue?.path ?? []) ? `${field} is required.` : (issue?.message ?? ''), field)
}

function isMissing(body: unknown, path: readonly PropertyKey[]): boolean {
  let value = body
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return true
    value = (value as Record<PropertyKey, unknown>)[name]
  }
  return false
}

function refused(message: string, param?: string): { kind: 'refused'; refusal: Refusal } {
  return { kind: 'refused', refusal: refuse('bad_request', message, param === undefined ? {} : { param }) }
}
