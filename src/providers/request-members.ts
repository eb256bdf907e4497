import {
  arrayOf,
  handedOver,
  objectOf,
  type Picked,
  type PickedObject,
  type Place,
  PRESENCE,
  sparseArrayOf,
  streamOf,
  TEXT,
  UNREAD,
} from '../metering/json-place.ts'
import type { JsonMember, UnreadableJson } from '../metering/json-scan.ts'
import { scanJson } from '../metering/json-walker.ts'
import { MODEL_NAME_CHARS_MAX, type RequestFacts, type RequestMember } from '../metering/request-facts.ts'

type JsonFacts = Extract<RequestFacts, { kind: 'json' }>

/** Finds a top-level member of a JSON body. */
export type GetMember = (name: RequestMember) => JsonMember | undefined

export function memberGetter(facts: RequestFacts): GetMember {
  return (name) => (facts.kind === 'json' ? facts.scan.members.get(name) : undefined)
}

export function isGiven(member: JsonMember | undefined): member is JsonMember {
  return member !== undefined && member.kind !== 'null'
}

/** The model that a request asks for; null where it names none, or none that can be read. */
export function modelAsked(facts: RequestFacts): string | null {
  const name = modelNamed(facts)
  return name === null || name.length > MODEL_NAME_CHARS_MAX ? null : name
}

function modelNamed(facts: RequestFacts): string | null {
  if (facts.kind === 'form') {
    const field = facts.scan.fields.get('model')
    return field?.kind === 'text' ? field.value : null
  }
  if (facts.kind !== 'json') return null
  const member = facts.scan.members.get('model')
  return member?.kind === 'string' ? member.value : null
}

/** Stands for a number that limits nothing, or that cannot be read: an upstream that reads it may read any number. */
export const LIMITLESS = Number.MAX_SAFE_INTEGER

/** A value of JSON as a whole number from 0 on, such as 1e3 and 8.0. A text, -1 and 1.5 are left to upstream: limitless. */
export function count(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : LIMITLESS
}

export function isPickedObject(picked: Picked | undefined): picked is PickedObject {
  return typeof picked === 'object' && picked !== null && !Array.isArray(picked)
}

export function isPickedArray(picked: Picked | undefined): picked is readonly Picked[] {
  return Array.isArray(picked)
}

const NAMING: Place = objectOf({ model: TEXT })

/** The members of a fallback: its model, and the limits of its cost. */
const FALLBACK: Place = objectOf({ model: TEXT, max_tokens: TEXT, speed: TEXT })

/** An image tool draws with `model`, and may have an SVG written by another model. The other members limit the cost. */
const TOOL_MEMBERS = {
  type: TEXT,
  model: TEXT,
  output_format: TEXT,
  svg: NAMING,
  max_uses: TEXT,
  max_tokens: TEXT,
  execution: TEXT,
  environment: objectOf({ type: TEXT }),
}

/** A namespace holds tools, and no namespaces. */
const TOOLS: Place = arrayOf(
  objectOf({ ...TOOL_MEMBERS, tools: arrayOf(objectOf({ ...TOOL_MEMBERS, tools: TEXT })) }),
)

/** An item of the input that brings tools: `additional_tools`, the output of a tool search. */
const ITEM: Place = objectOf({ tools: TOOLS })

const EDIT: Place = objectOf({
  type: TEXT,
  trigger: objectOf({ type: TEXT, value: TEXT }),
  compact_threshold: TEXT,
})

/**
 * The members of a request that lead to models, and two that limit what it costs: a member that
 * is read inside of them must not be there twice.
 */
const MODEL_MEMBERS = {
  model: objectOf({ id: TEXT }),
  fallbacks: arrayOf(FALLBACK),
  tools: TOOLS,
  prompt: objectOf({}),
  moderation: NAMING,
  svg: NAMING,
  output_format: TEXT,
  method: objectOf({ type: TEXT, reinforcement: TEXT }),
  thread: objectOf({ type: TEXT, previous_message_id: TEXT }),
  context_management: { ...objectOf({ edits: arrayOf(EDIT) }), elements: EDIT },
} as const satisfies Partial<Record<RequestMember, Place>>

/** A request inside a batch. */
const BODY: Place = objectOf({ ...MODEL_MEMBERS, input: sparseArrayOf(ITEM) })

/** A batch of the Messages surface. */
export const BATCH: Place = objectOf({ requests: streamOf(objectOf({ params: handedOver(BODY) })) })

/** A line of an uploaded batch of the Chat surface. */
export const BATCH_LINE: Place = objectOf({ url: TEXT, body: handedOver(BODY) })

/** The members in which an item of the input has its content, besides its tools. */
export const ITEM_CONTENT = ['content', 'arguments', 'output', 'input', 'action', 'operation'] as const

const SEEN_ITEM: Place = objectOf({
  tools: TOOLS,
  type: TEXT,
  id: PRESENCE,
  encrypted_content: TEXT,
  ...Object.fromEntries(ITEM_CONTENT.map((name) => [name, PRESENCE])),
})

/** A request whose items are in the member of that name. */
export function withItems(name: string): Place {
  return objectOf({ [name]: streamOf(SEEN_ITEM) })
}

/** Prompts to be completed: texts, or arrays of tokens, of which nothing is kept. */
export const PROMPTS: Place = objectOf({ prompt: streamOf(sparseArrayOf(TEXT)) })

/** The values of the members that lead to models. */
interface PickedMembers {
  readonly body: PickedObject
  /** Paths inside of the members that are given twice. */
  readonly duplicates: readonly string[]
  readonly unreadable: UnreadableJson | null
}

/**
 * The limits, the models and the ambiguity of a request are read one after the other, all from the picked members, and
 * `tools` can be long. The last pick is remembered: a WeakMap of all picks took a microsecond for each request.
 */
let last: { readonly facts: JsonFacts; readonly members: PickedMembers } | null = null

/** The members of a body that lead to models, be it JSON or a form. */
export function membersOf(facts: RequestFacts): PickedObject {
  if (facts.kind === 'json') return pickMembers(facts).body
  const fields: Record<string, Picked> = {}
  if (facts.kind !== 'form') return fields
  for (const name of ['model', 'output_format', 'svg'] as const) {
    const field = facts.scan.fields.get(name)
    if (field !== undefined) fields[name] = field.kind === 'text' ? field.value : UNREAD
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
  const body: Record<string, Picked> = {}
  const duplicates: string[] = []
  let unreadable: UnreadableJson | null = null
  for (const name of NAMES) {
    const member = scan.members.get(name)
    if (member === undefined) continue
    const value = pickMember(member, MODEL_MEMBERS[name])
    if ('value' in value) body[name] = value.value
    else {
      const scan = scanJson(Buffer.from(value.json), value.place)
      body[name] = scan.kind === 'object' ? scan.picked.value : UNREAD
      if (scan.kind === 'unreadable') unreadable ??= scan.reason
      else
        for (const path of scan.picked.duplicates)
          duplicates.push(`${name}${path.startsWith('[') ? '' : '.'}${path}`)
    }
  }
  return { body, duplicates, unreadable }
}

/** A member's value, or the JSON that has to be looked into and the place to look for. */
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
      // An object that was too long to be kept is still an object: a prompt that is an object is a stored one.
      return { value: member.type === 'object' && place.members !== null ? {} : UNREAD }
    case 'boolean':
    case 'number':
      return { value: UNREAD }
  }
}
