import type { Surface } from '../kernel/surface.ts'
import { MARKS } from '../metering/content-marks.ts'
import { MODEL_NAME_CHARS_MAX, type RequestFacts } from '../metering/request-facts.ts'
import { ambiguityOf } from './ambiguity.ts'
import { isFileId } from './batch-file.ts'
import type { Endpoint } from './endpoint.ts'
import { findEndpoint } from './find-endpoint.ts'
import { ModelNames, readModels } from './read-models.ts'
import { membersOf } from './request-members.ts'
import { SURFACES } from './surfaces.ts'

/** The models that a request can lead to, as far as they can be known before it runs. */
export interface NamedModels {
  readonly names: readonly string[]
  /** Why there may be more than the names say, as a sentence, or null. */
  readonly unknown: string | null
  /** A file of requests that was uploaded before, whose models are the request's. */
  readonly batchFile: string | null
}

const NOTHING: NamedModels = { names: [], unknown: null, batchFile: null }

/** Agents and dreams may give their model as an object with settings, of which `id` is the name. */
const MODEL_MAY_BE_OBJECT = /^\/v1\/(?:agents|dreams)(?:\/|$)/

/**
 * Finds every model that a request can lead to. Where the answer cannot be known before the call has run it says so,
 * and never nothing, unless no model takes part or the call is free. `query` is the target's, with its `?`; `byDefault`
 * is the model that upstream takes for a request that names none, where that is known.
 */
export function namedModels(
  endpoint: Endpoint | null,
  surface: Surface,
  method: string,
  path: string,
  facts: RequestFacts,
  query = '',
  byDefault: string | null = null,
): NamedModels {
  // HEAD does what GET does.
  const found = endpoint ?? (method === 'HEAD' ? findEndpoint(surface, 'GET', path) : null)
  if (found === null) return unknown('This endpoint is not one that the gateway knows.')
  if (found.billing === 'mints_credential')
    return unknown('This endpoint hands out a credential that reaches every model.')
  switch (found.model) {
    case 'none':
      return NOTHING
    case 'path':
      return named(modelInPath(found, path), 'The path names no model.')
    case 'query':
      return named(modelInQuery(query), 'The query does not name one model.')
    case 'json':
    case 'multipart':
      return namedInBody(found, facts, byDefault)
    case 'batch_entries':
      return namedInEntries(found, facts)
    case 'batch_file':
      return namedInFile(facts)
    case 'nested':
      return unknown('This endpoint names its models where the gateway does not read them.')
    case 'elsewhere':
      return found.billing === 'free'
        ? NOTHING
        : unknown('This endpoint names its model where it is not looked for.')
  }
}

function unknown(reason: string): NamedModels {
  return { ...NOTHING, unknown: reason }
}

function named(name: string | null, otherwise: string): NamedModels {
  if (name === null || name.length > MODEL_NAME_CHARS_MAX) return unknown(otherwise)
  return { ...NOTHING, names: [name] }
}

/** `path` is one that found the endpoint. */
function modelInPath({ template }: Endpoint, path: string): string | null {
  return path.split('/')[template.split('/').indexOf('{model}')] ?? null
}

/** With these parameters a socket joins a call, or takes its model from an event. */
function modelInQuery(query: string): string | null {
  const models: string[] = []
  for (const [name, value] of new URLSearchParams(query)) {
    if (name === 'model') models.push(value)
    else if (/^(?:model|call_id|intent)$/i.test(name)) return null
  }
  return models.length === 1 ? (models[0] ?? null) : null
}

function namedInBody(endpoint: Endpoint, facts: RequestFacts, byDefault: string | null): NamedModels {
  const ambiguity = ambiguityOf(facts)
  if (ambiguity !== null) return unknown(ambiguity.detail)
  if (facts.kind === 'form' && endpoint.model === 'json')
    return unknown('The body is a form, and this endpoint reads JSON.')
  const names = new ModelNames()
  readModels(membersOf(facts), names, MODEL_MAY_BE_OBJECT.test(endpoint.template), byDefault)
  const records = facts.kind === 'json' ? facts.records : null
  const reason = endpoint.billing === 'free' ? names.unreadable : names.unknown
  return {
    names: records === null ? names.names : [...new Set([...names.names, ...records.models])],
    unknown: reason ?? records?.unknown ?? unseenTools(endpoint, facts),
    batchFile: null,
  }
}

/** A tool that is defined inside of a conversation can be an advisor, and names its model there. */
function unseenTools({ surface, billing }: Endpoint, facts: RequestFacts): string | null {
  if (!SURFACES[surface].toolsInConversation || billing === 'free' || facts.kind !== 'json') return null
  if ((facts.scan.marks & MARKS.tool) === 0) return null
  return 'The conversation defines tools, which may name models of their own.'
}

function namedInEntries(endpoint: Endpoint, facts: RequestFacts): NamedModels {
  const ambiguity = ambiguityOf(facts)
  if (ambiguity !== null) return unknown(ambiguity.detail)
  if (facts.kind !== 'json' || facts.records === null)
    return unknown('The requests of the batch were not read.')
  const { records } = facts
  return {
    names: records.models,
    unknown: records.unknown ?? unseenTools(endpoint, facts),
    batchFile: null,
  }
}

export function namedInFile(facts: RequestFacts): NamedModels {
  const ambiguity = ambiguityOf(facts)
  if (ambiguity !== null) return unknown(ambiguity.detail)
  const file = facts.kind === 'json' ? facts.scan.members.get('input_file_id') : undefined
  if (file?.kind !== 'string' || !isFileId(file.value))
    return unknown('The batch does not say which file it is made of.')
  return { ...NOTHING, batchFile: file.value }
}
