/** An object as it came over the wire: a member may be missing or be anything. */
export type WireObject = Readonly<Record<string, unknown>>

const EMPTY: WireObject = {}
const NAME_LENGTH_MAX = 256

export function isObject(value: unknown): value is WireObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The object, or one without members in place of anything else. */
export function objectAt(value: unknown): WireObject {
  return isObject(value) ? value : EMPTY
}

export function listAt(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** A string that can be the name of something: a model, a tier, a reason, an id. */
export function nameAt(value: unknown): string | null {
  return typeof value === 'string' && value !== '' && value.length <= NAME_LENGTH_MAX ? value : null
}

export function textAt(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
