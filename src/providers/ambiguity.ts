import { AMBIGUOUS, isObject, NameTable, type Skimmed, UNREAD } from '../metering/json-shape.ts'
import type { MultipartScan } from '../metering/multipart-scanner.ts'
import { type Ambiguity, NOT_READ, type RequestFacts } from '../metering/request-facts.ts'
import type { Endpoint } from './endpoint.ts'
import { listAt } from './reading.ts'
import { INNER_NAMES, isGiven } from './request-members.ts'

/** The message for each reason why a body cannot be read: the problem, and what to do. */
const REASONS: Readonly<Record<string, string>> = {
  empty: 'it is empty. Send JSON',
  byte_order_mark: 'it begins with a byte order mark. Send it without the mark',
  not_utf8: 'it is not UTF-8. Encode it as UTF-8',
  not_json: 'it is not JSON. Send JSON',
  not_an_object: 'it is not a JSON object. Send an object',
  truncated: 'it is incomplete. Send all of it',
  trailing_bytes: 'bytes follow its end. Send one JSON text',
  too_deep: 'it is nested too deeply. Send fewer levels',
  too_large: 'it is too large. Send a smaller one',
  name_too_long: 'the name of a member is too long. Send a shorter one',
  ambiguous_name:
    'two JSON parsers may read one of its member names differently. Spell member names as the API does',
  preamble: 'its form has bytes before the first part. Begin the body with the boundary',
  stray_boundary:
    'its form has a boundary where no part begins. Choose a boundary that the parts do not contain',
  no_closing_boundary: 'its form has no closing boundary. Send all of it',
  bad_part_head: 'the head of a form part is ambiguous. Send each header once',
  part_head_too_large: 'the head of a form part is too large. Send fewer headers',
  too_many_parts: 'its form has too many parts. Send fewer',
  ambiguous_part: 'a form field could be read as a file or decoded differently. Send fields as plain text',
  ambiguous_content_type:
    'its content type is neither JSON nor multipart/form-data with one clear boundary. Send one of them',
  // It could be one: `{"model":"a","x":"&model=b&"}`.
  may_be_form: 'its content type says that it is a form. Send it as application/json',
  // Some servers expect the zlib format and others bare deflate, and some bytes are valid as both.
  deflate: 'the content encoding "deflate" is ambiguous. Send it uncompressed or as gzip',
  // If upstream decodes this charset, the quotes of the JSON text may be elsewhere.
  foreign_charset: 'its content type names a charset other than UTF-8. Encode it as UTF-8',
  two_content_types: 'it has two content types or encodings. Send one of each',
  unknown_content_encoding: 'its content encoding is unknown. Send it uncompressed or as gzip',
  corrupt: 'it does not match its content encoding. Send it uncompressed or as gzip',
  too_dense: 'it decompresses to far more than was sent. Send it uncompressed',
}

/**
 * The reasons of bodies that parsers read differently. The other reasons are of bodies that no parser can read, or that
 * exceed our limits.
 */
const ALWAYS: ReadonlySet<string> = new Set(['ambiguous_name', 'name_too_long', 'ambiguous_part'])

const INNER = new NameTable(Array.from(INNER_NAMES, (name) => [name, name] as const))

/** Why a body is refused. `doubt`: why upstream may read it differently, although the gateway can read it. */
export function ambiguityOf(scanned: Skimmed | MultipartScan, doubt: string | null): Ambiguity | null {
  switch (scanned.kind) {
    case 'unreadable':
      return unreadable(scanned.reason)
    case 'form': {
      const [twice] = scanned.duplicates
      if (twice !== undefined)
        return always(`The field ${JSON.stringify(twice)} is given twice. Send it once.`)
      break
    }
    case 'object': {
      const { duplicates, twiceInside, value } = scanned
      const twice = duplicates[0] ?? twiceInside.find((name) => INNER_NAMES.has(name))
      if (twice !== undefined) return givenTwice(twice)
      const members = [value['stream_options'], ...listAt(value['tools']), ...listAt(value['fallbacks'])]
      if (members.some(hasLookalike)) return unreadable('ambiguous_name')
    }
  }
  return doubt === null ? null : unreadable(doubt)
}

function hasLookalike(value: unknown): boolean {
  return isObject(value) && Object.keys(value).some((name) => INNER.findText(name) === AMBIGUOUS)
}

export function givenTwice(member: string): Ambiguity {
  return always(`The member ${JSON.stringify(member)} is given twice. Send it once.`)
}

export function unreadable(reason: string): Ambiguity {
  const known = Object.hasOwn(REASONS, reason) ? REASONS[reason] : reason
  return {
    detail: `The body cannot be read: ${known}.`,
    refuse: ALWAYS.has(reason) ? 'always' : 'limited',
  }
}

function always(detail: string): Ambiguity {
  return { detail, refuse: 'always' }
}

export function unreadableFacts(reason: string): RequestFacts {
  return { ...NOT_READ, kind: 'unreadable', ambiguity: unreadable(reason) }
}

/** Why the body must be refused, and to which keys. Only on metered endpoints is it refused to every key. */
export function ambiguityFor(endpoint: Endpoint | null, facts: RequestFacts): Ambiguity | null {
  const { ambiguity } = facts
  if (endpoint?.billing !== 'metered') {
    return ambiguity?.refuse === 'always' ? { ...ambiguity, refuse: 'limited' } : ambiguity
  }
  if (ambiguity?.refuse === 'always') return ambiguity
  const odd = oddMember(facts, endpoint.usage === 'responses')
  return odd === null ? ambiguity : always(odd)
}

/**
 * A member of a type that only some servers accept, or null. Some servers convert 1, "true" or [], so we cannot know
 * what would be metered.
 */
function oddMember({ kind, body }: RequestFacts, hasBackground: boolean): string | null {
  const { model, stream, background, stream_options: options } = body
  if (kind === 'json' && isGiven(model) && typeof model !== 'string' && model !== UNREAD)
    return '"model" must be a string.'
  if (!isFlag(stream)) return '"stream" must be a boolean.'
  // On the images endpoints, `background` is a string.
  if (hasBackground && !isFlag(background)) return '"background" must be a boolean.'
  if (!isGiven(options)) return null
  if (kind === 'form') return 'The field "stream_options" must be an object in a JSON body.'
  if (options === UNREAD) return '"stream_options" is too long.'
  if (!isObject(options)) return '"stream_options" must be an object.'
  return isFlag(options['include_usage']) ? null : '"stream_options.include_usage" must be a boolean.'
}

function isFlag(value: unknown): boolean {
  return !isGiven(value) || typeof value === 'boolean'
}
