import type { JsonMember } from '../metering/json-scan.ts'
import type { MultipartField } from '../metering/multipart-scanner.ts'
import type { Ambiguity, RequestFacts } from '../metering/request-facts.ts'
import { always, ambiguityOf } from './ambiguity.ts'
import { askInOptions, type CannotAsk } from './chat-usage/ask-for-usage.ts'
import type { Endpoint } from './endpoint.ts'

/** Why the body of a call is to be refused, and to whom; only what is metered is refused to every key for it. */
export function ambiguityFor(endpoint: Endpoint | null, facts: RequestFacts): Ambiguity | null {
  const found = ambiguityOf(facts)
  if (endpoint?.billing !== 'metered') {
    return found?.refuse === 'always' ? { ...found, refuse: 'limited' } : found
  }
  if (found?.refuse === 'always') return found
  const odd = oddMember(facts, endpoint.usage === 'responses')
  return odd === null ? found : always(odd)
}

/** Some servers take 1, "true" or [] for what they want to read, and others refuse it, so nobody knows what is metered. */
function oddMember(facts: RequestFacts, hasBackground: boolean): string | null {
  if (facts.kind === 'json') {
    const { members } = facts.scan
    if (!isText(members.get('model'))) return '"model" must be a string.'
    if (!isFlag(members.get('stream'))) return '"stream" must be a boolean.'
    // The images endpoints have a word under this name.
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

/** Clients in Python spell it with a capital. */
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
