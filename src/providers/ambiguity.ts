import { AMBIGUOUS, isObject, NameTable, type Skimmed, UNREAD } from '../metering/json-shape.ts'
import type { MultipartScan } from '../metering/multipart-scanner.ts'
import type { Endpoint } from './endpoint.ts'
import { asList } from './reading.ts'
import {
  type Ambiguity,
  INNER_NAMES,
  isGiven,
  MODEL_NAME_CHARS_MAX,
  NOT_READ,
  type RequestFacts,
} from './request-facts.ts'
import reasons from './unreadable-reasons.json' with { type: 'json' }

/** The message for each reason why a body cannot be read: the problem, and what to do. */
const REASONS: Readonly<Record<string, string>> = reasons

/** Parsers read a body differently for these reasons. For others, no parser can read it, or it exceeds our limits. */
const ALWAYS: ReadonlySet<string> = new Set(['ambiguous_name', 'name_too_long', 'ambiguous_part'])

const INNER = new NameTable(Array.from(INNER_NAMES, (name) => [name, name] as const))

/** Why a body is refused. `doubt`: why upstream may read it differently, although the gateway can read it. */
export function findAmbiguity(scanned: Skimmed | MultipartScan, doubt: string | null): Ambiguity | null {
  switch (scanned.kind) {
    case 'unreadable':
      return unreadable(scanned.reason)
    case 'form': {
      const [duplicate] = scanned.duplicates
      if (duplicate !== undefined)
        return always(`The field ${JSON.stringify(duplicate)} is given twice. Send it once.`)
      break
    }
    case 'object': {
      const { duplicates, nestedDuplicates } = scanned
      const duplicate = duplicates[0] ?? nestedDuplicates.find((name) => INNER_NAMES.has(name))
      if (duplicate !== undefined) return givenTwice(duplicate)
    }
  }
  return doubt === null ? null : unreadable(doubt)
}

/** The ambiguity of a nested name that some parsers treat like a name that is read. */
export function ambiguousInnerName({ body, tools }: Pick<RequestFacts, 'body' | 'tools'>): Ambiguity | null {
  const members = [body['stream_options'], ...(tools ?? []), ...asList(body['fallbacks'])]
  const isAmbiguous = (name: string) => INNER.findText(name) === AMBIGUOUS
  const isFound = members.some((member) => isObject(member) && Object.keys(member).some(isAmbiguous))
  return isFound ? unreadable('ambiguous_name') : null
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

/** Why the body must be refused, and to which keys. Only on metered endpoints, and for batches, is it refused to every key. */
export function ambiguityAtEndpoint(endpoint: Endpoint | null, facts: RequestFacts): Ambiguity | null {
  const { ambiguity } = facts
  if (endpoint?.billing !== 'metered' && endpoint?.makes === undefined) {
    return ambiguity?.refuse === 'always' ? { ...ambiguity, refuse: 'limited' } : ambiguity
  }
  if (ambiguity?.refuse === 'always') return ambiguity
  const problem = problemOfMember(facts, endpoint.billing === 'metered' && endpoint.usage === 'responses')
  if (problem !== null) return always(problem)
  const detail = ambiguity === null ? unreadPart(facts, endpoint) : null
  return detail === null ? ambiguity : { detail, refuse: 'limited' }
}

/** A part of a readable body that the gateway does not read. */
function unreadPart({ kind, body: { model } }: RequestFacts, { reads }: Endpoint): string | null {
  if (kind === 'form' && reads !== 'multipart') return 'The body is a form. Send JSON to this endpoint.'
  const isLong = model === UNREAD || (typeof model === 'string' && model.length > MODEL_NAME_CHARS_MAX)
  return isLong ? `"model" must have at most ${MODEL_NAME_CHARS_MAX} characters. Check the name.` : null
}

/** Refuses a member of a type that some servers convert and others refuse: we cannot know what upstream would meter. */
function problemOfMember({ kind, body }: RequestFacts, hasBackground: boolean): string | null {
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
