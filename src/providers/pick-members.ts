import { type Picked, type PickedObject, type Place, UNREAD } from '../metering/json-place.ts'
import type { JsonMember, UnreadableJson } from '../metering/json-scan.ts'
import { scanJson } from '../metering/json-walker.ts'
import type { RequestFacts } from '../metering/request-facts.ts'
import { MODEL_MEMBERS } from './model-places.ts'

type JsonFacts = Extract<RequestFacts, { kind: 'json' }>

/** What the members say that lead to models. */
export interface PickedMembers {
  readonly body: PickedObject
  /** Inside of them. */
  readonly duplicates: readonly string[]
  readonly unreadable: UnreadableJson | null
}

/**
 * Who asks for limits, for models and for ambiguity needs them, one after the other, and `tools` can be long. The last
 * one is remembered: a WeakMap of all took a microsecond for each request.
 */
let last: { readonly facts: JsonFacts; readonly members: PickedMembers } | null = null

/** The members of a body that lead to models, be it JSON or a form. */
export function membersOf(facts: RequestFacts): PickedObject {
  if (facts.kind === 'json') return pickMembers(facts).body
  const fields = new Map<string, Picked>()
  if (facts.kind !== 'form') return fields
  for (const name of ['model', 'output_format', 'svg'] as const) {
    const field = facts.scan.fields.get(name)
    if (field !== undefined) fields.set(name, field.kind === 'text' ? field.value : UNREAD)
  }
  return fields
}

export function pickMembers(facts: JsonFacts): PickedMembers {
  if (last?.facts === facts) return last.members
  const members = pickAll(facts)
  last = { facts, members }
  return members
}

const NAMES = Object.keys(MODEL_MEMBERS) as readonly (keyof typeof MODEL_MEMBERS)[]

function pickAll({ scan }: JsonFacts): PickedMembers {
  const body = new Map<string, Picked>()
  const duplicates: string[] = []
  let unreadable: UnreadableJson | null = null
  for (const name of NAMES) {
    const member = scan.members.get(name)
    if (member === undefined) continue
    const value = pickMember(member, MODEL_MEMBERS[name])
    if ('value' in value) body.set(name, value.value)
    else {
      const scan = scanJson(Buffer.from(value.json), value.place)
      body.set(name, scan.kind === 'object' ? scan.picked.value : UNREAD)
      if (scan.kind === 'unreadable') unreadable ??= scan.reason
      else
        for (const path of scan.picked.duplicates)
          duplicates.push(`${name}${path.startsWith('[') ? '' : '.'}${path}`)
    }
  }
  return { body, duplicates, unreadable }
}

/** A member's value, or what of it has to be looked into. */
function pickMember(
  member: JsonMember,
  place: Place,
): { readonly value: Picked } | { readonly json: string; readonly place: Place } {
  switch (member.kind) {
    case 'null':
      return { value: null }
    case 'string':
      return { value: member.value }
    case 'object':
      return place.members === null ? { value: UNREAD } : { json: member.json, place }
    case 'array':
      return place.elements === null ? { value: UNREAD } : { json: member.json, place }
    case 'too_long':
      // An object of which nothing is known is still an object: a prompt that is one is a stored one.
      return { value: member.type === 'object' && place.members !== null ? new Map() : UNREAD }
    case 'boolean':
    case 'number':
      return { value: UNREAD }
  }
}
