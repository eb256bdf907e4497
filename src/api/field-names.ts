import { formatUsd, type Nanos, type RawNumber, rawInteger, rawNumber } from '../kernel/money.ts'

/**
 * API objects have the members of our records, in snake case. Money (`costNanos`) is `cost_usd`, instants (`startedAtMs`)
 * are `started_at`. The database threads load this file.
 */

type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : ''

export type FieldOf<Member extends string> = Member extends `${infer Name}Nanos`
  ? `${SnakeCase<Name>}_usd`
  : Member extends `${infer Name}AtMs`
    ? `${SnakeCase<Name>}_at`
    : SnakeCase<Member>

type WrittenAs<Member, Value> = Value extends null
  ? null
  : Value extends bigint
    ? RawNumber
    : Member extends `${string}AtMs`
      ? string
      : Value

export type Fields<Of, Member extends keyof Of & string> = {
  readonly [Name in Member as FieldOf<Name>]: WrittenAs<Name, Of[Name]>
}

const known = new Map<string, string>()

export function fieldOf<Member extends string>(member: Member): FieldOf<Member> {
  const field =
    known.get(member) ??
    member
      .replace(/Nanos$/, 'Usd')
      .replace(/AtMs$/, 'At')
      .replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  known.set(member, field)
  return field as FieldOf<Member>
}

/** These members of a record as fields of an API object. Members must be named, so that no new one is shown by accident. */
export function fieldsOf<Of extends object, Member extends keyof Of & string>(
  record: Of,
  members: readonly Member[],
): Fields<Of, Member> {
  const fields: Record<string, unknown> = {}
  for (const member of members) fields[fieldOf(member)] = shown(member, record[member])
  return fields as Fields<Of, Member>
}

function shown(member: string, value: unknown): unknown {
  if (typeof value === 'bigint') return member.endsWith('Nanos') ? usd(value) : rawInteger(value)
  return typeof value === 'number' && member.endsWith('AtMs') ? formatInstant(value) : value
}

export function formatInstant(ms: number): string
export function formatInstant(ms: number | null): string | null
export function formatInstant(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}

/** Money in an answer: a JSON number printed from the integer, never from a double. */
export function usd(nanos: Nanos): RawNumber
export function usd(nanos: Nanos | null): RawNumber | null
export function usd(nanos: Nanos | null): RawNumber | null {
  return nanos === null ? null : rawNumber(formatUsd(nanos))
}
