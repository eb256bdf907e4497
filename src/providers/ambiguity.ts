import type { JsonMember, UnreadableJson } from '../metering/json-scan.ts'
import type { MultipartField, UnreadableMultipart } from '../metering/multipart-scanner.ts'
import type { Ambiguity, Doubt, RequestFacts } from '../metering/request-facts.ts'
import { askInOptions, type CannotAsk } from './chat-usage/ask-for-usage.ts'
import type { Endpoint } from './endpoint.ts'
import { pickMembers } from './request-members.ts'

type Reason =
  | UnreadableJson
  | UnreadableMultipart
  | 'no_boundary'
  | 'ambiguous_content_type'
  | Doubt
  | 'two_content_types'
  | 'unknown_content_encoding'
  | 'corrupt_content_encoding'
  | 'too_dense'

const REASONS: Readonly<Record<Reason, string>> = {
  empty: 'it is empty',
  byte_order_mark: 'it begins with a byte order mark',
  not_utf8: 'it is not UTF-8',
  not_json: 'it is not JSON',
  not_an_object: 'it is not a JSON object',
  truncated: 'it ends too early',
  trailing_bytes: 'something follows behind its end',
  too_deep: 'it is nested too deeply',
  too_large: 'it is too large',
  too_much: 'it names too much',
  name_too_long: 'the name of a member is too long',
  too_many_members: 'it has too many members',
  ambiguous_name: 'a name is spelled so that some parsers read it as another',
  preamble: 'something stands before the first part of its form',
  stray_boundary: 'the boundary of its form stands where no part begins',
  no_closing_boundary: 'its form has no end',
  bad_part_head: 'the head of a part of its form cannot be read beyond doubt',
  part_head_too_large: 'the head of a part of its form is too large',
  too_many_parts: 'its form has too many parts',
  ambiguous_part: 'a field of its form could be taken for a file or be decoded in another way',
  no_boundary: 'its content type gives no boundary that can be read beyond doubt',
  ambiguous_content_type: 'its content type is neither JSON nor multipart/form-data',
  may_be_form: 'its content type says that it is a form; send it as application/json',
  deflate: 'what is deflated can be read in two ways; send it as it is or as gzip',
  foreign_charset: 'its content type says that its text is not UTF-8',
  two_content_types: 'it has two content types or encodings',
  unknown_content_encoding: 'its content encoding is unknown',
  corrupt_content_encoding: 'it is not in the content encoding that it claims',
  too_dense: 'decoded it is far longer than it came',
}

/** Reasons on which parsers differ. The other reasons are of bodies that no parser can read, or that are beyond our limits. */
const ALWAYS: ReadonlySet<string> = new Set<Reason>(['ambiguous_name', 'name_too_long', 'ambiguous_part'])

/** The ambiguity of a body; null for a body that is clear or was not read. */
export function ambiguityOf(facts: RequestFacts): Ambiguity | null {
  switch (facts.kind) {
    case 'not_read':
      return null
    case 'unreadable':
      return unreadable(facts.reason)
    case 'form': {
      const [twice] = facts.scan.duplicates
      if (twice !== undefined) return always(`The field ${JSON.stringify(twice)} is there twice.`)
      return facts.doubt === null ? null : unreadable(facts.doubt)
    }
    case 'json': {
      const twice = facts.scan.duplicates[0]
      if (twice !== undefined) return givenTwice(twice)
      const { duplicates, unreadable: reason } = pickMembers(facts)
      if (duplicates[0] !== undefined) return givenTwice(duplicates[0])
      const picked = reason === null ? null : unreadable(reason)
      if (picked?.refuse === 'always') return picked
      const recorded = facts.records?.ambiguity ?? null
      if (recorded?.refuse === 'always' || facts.doubt === null) return recorded ?? picked
      return unreadable(facts.doubt)
    }
  }
}

export function givenTwice(member: string): Ambiguity {
  return always(`The member ${JSON.stringify(member)} is there twice.`)
}

export function unreadable(reason: string): Ambiguity {
  const known = Object.hasOwn(REASONS, reason) ? REASONS[reason as Reason] : reason
  return {
    detail: `The body cannot be read: ${known}.`,
    refuse: ALWAYS.has(reason) ? 'always' : 'limited',
  }
}

function always(detail: string): Ambiguity {
  return { detail, refuse: 'always' }
}

/** Why the body of a call is to be refused, and to which keys; only metered calls are refused to every key for it. */
export function ambiguityFor(endpoint: Endpoint | null, facts: RequestFacts): Ambiguity | null {
  const found = ambiguityOf(facts)
  if (endpoint?.billing !== 'metered') {
    return found?.refuse === 'always' ? { ...found, refuse: 'limited' } : found
  }
  if (found?.refuse === 'always') return found
  const odd = oddMember(facts, endpoint.usage === 'responses')
  return odd === null ? found : always(odd)
}

/** Some servers convert 1, "true" or [] to the type of the member, others refuse it, so it is not known what is metered. */
function oddMember(facts: RequestFacts, hasBackground: boolean): string | null {
  if (facts.kind === 'json') {
    const { members } = facts.scan
    if (!isText(members.get('model'))) return '"model" must be a string.'
    if (!isFlag(members.get('stream'))) return '"stream" must be a boolean.'
    // The images endpoints have a word under `background`.
    if (hasBackground && !isFlag(members.get('background'))) return '"background" must be a boolean.'
    const options = members.get('stream_options')
    return options === undefined ? null : oddOptions(options)
  }
  if (facts.kind === 'form') {
    const { fields } = facts.scan
    if (!isFlagField(fields.get('stream'))) return 'The field "stream" must be true or false.'
    if (hasBackground && !isFlagField(fields.get('background')))
      return 'The field "background" must be true or false.'
    if (fields.has('stream_options')) return 'The field "stream_options" must be an object in a JSON body.'
  }
  return null
}

function isText(member: JsonMember | undefined): boolean {
  if (member === undefined || member.kind === 'null' || member.kind === 'string') return true
  return member.kind === 'too_long' && member.type === 'string'
}

function isFlag(member: JsonMember | undefined): boolean {
  return member === undefined || member.kind === 'null' || member.kind === 'boolean'
}

/** Clients in Python spell `True` and `False` with a capital. */
function isFlagField(field: MultipartField | undefined): boolean {
  return field === undefined || (field.kind === 'text' && /^(?:true|false|null|)$/i.test(field.value))
}

const CANNOT_ASK: Readonly<Partial<Record<CannotAsk, string>>> = {
  include_usage_twice: 'has "include_usage" twice',
  include_usage_no_boolean: 'has an "include_usage" that is no boolean',
  stream_options_ambiguous: 'has a name that some parsers read as another',
  stream_options_too_long: 'is too long',
}

function oddOptions(options: JsonMember): string | null {
  const ask = askInOptions(options)
  return ask.kind === 'cannot' ? `"stream_options" ${CANNOT_ASK[ask.reason] ?? 'must be an object'}.` : null
}
