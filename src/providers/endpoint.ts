export type Surface = 'messages' | 'chat'

/** `WS` is a GET that asks to become a WebSocket; the two never mean the same on one path. */
export type Method = 'GET' | 'POST' | 'DELETE' | 'WS'

/**
 * Where a request names its model.
 * - `json`: top-level member `model` of a JSON body. Optional on some endpoints, and on agent and dream
 *   definitions it may be an object with an `id` instead of a string.
 * - `multipart`: form field `model`.
 * - `query`: parameter `model` of the request target.
 * - `path`: the segment that the template calls `{model}`.
 * - `batch_entries`: `requests[].params.model`, one per entry.
 * - `batch_file`: in a file of requests that was uploaded before; member `input_file_id` of a JSON body says which.
 * - `nested`: deeper in the body, at a place that only this endpoint has (`session.model`, `grader.model` …).
 * - `elsewhere`: in an object, a file or a socket event that this request only leads to.
 * - `none`: no model takes part.
 */
export type ModelPlace =
  | 'json'
  | 'multipart'
  | 'query'
  | 'path'
  | 'batch_entries'
  | 'batch_file'
  | 'nested'
  | 'elsewhere'
  | 'none'

/**
 * Which body has to be read before the call can be admitted. This is the form that SDKs send; some form
 * endpoints take JSON as well (image edits by URL, for one), so the request's content type has the last word.
 */
export type BodyReading = 'json' | 'multipart' | 'nothing'

/** Which reader finds the usage in the reply (or, over a WebSocket, in the server's events). */
export type UsageReader =
  | 'messages'
  | 'chat'
  | 'responses'
  | 'embeddings'
  | 'images'
  | 'speech'
  | 'transcription'
  | 'decisions'
  | 'compaction'
  | 'completions'
  | 'realtime'
  | 'live'

/**
 * - `free`: upstream charges nothing for the call.
 * - `metered`: the reply carries the usage that is to be paid.
 * - `deferred`: the call starts work whose cost is known only later, and not from this reply.
 * - `unmeterable`: the call costs money and no reply ever says how much.
 * - `mints_credential`: the reply or its effect lets somebody reach upstream past the gateway, and goes on
 *   doing so after our key was revoked.
 */
type Billing =
  | { readonly billing: 'metered'; readonly usage: UsageReader }
  | { readonly billing: 'free' | 'deferred' | 'unmeterable' | 'mints_credential' }

export type EndpointKind = Billing & {
  readonly model: ModelPlace
  readonly reads: BodyReading
  /** Shows or touches objects kept under the upstream account, which all gateway keys share. */
  readonly stateful: boolean
  /** Free, unless `tool_resources` in its body create vector stores, whose storage no reply tells the cost of. */
  readonly mayStoreFiles?: true
}

export type Template = `/v1/${string}`

export type EndpointRow = readonly [method: Method, template: Template, kind: EndpointKind]

export type Endpoint = EndpointKind & {
  readonly surface: Surface
  readonly method: Method
  readonly template: Template
}

// The notation of the tables. A body is read exactly where it names the model, so `reads` follows from `model`.

/** Costs nothing and touches nothing stored. */
export function free(model: ModelPlace = 'none'): EndpointKind {
  return { billing: 'free', model, reads: readingFor(model), stateful: false }
}

/** Costs nothing per call, but shows or changes what is stored under the shared account. */
export function stored(model: ModelPlace = 'none'): EndpointKind {
  return onStored(free(model))
}

/** Stored, and its body can create vector stores. */
export function storingFiles(model: ModelPlace = 'none'): EndpointKind {
  return { ...stored(model), reads: 'json', mayStoreFiles: true }
}

export function metered(usage: UsageReader, model: ModelPlace): EndpointKind {
  return { billing: 'metered', usage, model, reads: readingFor(model), stateful: false }
}

/** The job, run or session that pays later is itself a stored object. */
export function deferred(model: ModelPlace): EndpointKind {
  return { billing: 'deferred', model, reads: readingFor(model), stateful: true }
}

export function unmeterable(model: ModelPlace, reads: BodyReading = readingFor(model)): EndpointKind {
  return { billing: 'unmeterable', model, reads, stateful: false }
}

/** A credential of the shared account reaches that account's objects, so this is always stateful. */
export function minting(model: ModelPlace = 'none'): EndpointKind {
  return { billing: 'mints_credential', model, reads: readingFor(model), stateful: true }
}

/** The same kind, on an object that is stored under the shared account. */
export function onStored(kind: EndpointKind): EndpointKind {
  return { ...kind, stateful: true }
}

function readingFor(model: ModelPlace): BodyReading {
  switch (model) {
    case 'json':
    case 'batch_entries':
    case 'batch_file':
    case 'nested':
      return 'json'
    case 'multipart':
      return 'multipart'
    case 'query':
    case 'path':
    case 'elsewhere':
    case 'none':
      return 'nothing'
  }
}
