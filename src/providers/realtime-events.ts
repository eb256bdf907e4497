import { PCM_BYTES_PER_MS } from '../metering/audio-clock.ts'
import {
  handedOver,
  objectOf,
  type PickedObject,
  SCALAR,
  scalars,
  sparseArrayOf,
  TEXT,
} from '../metering/json-place.ts'
import { JsonWalker } from '../metering/json-walker.ts'
import { PIECE_BYTES, writeInPieces } from '../metering/request-reader.ts'
import { givenTwice, unreadable } from './ambiguity.ts'
import { isObject, nameAt, objectAt, type WireObject } from './usage/reading.ts'

/** Another model that a session delegates work to. A null model or tier is chosen by upstream. */
export interface Delegate {
  readonly kind: 'responses' | 'decisions'
  readonly model: string | null
  readonly serviceTier: string | null
  /** The models of its image tools. Null: chosen by upstream. */
  readonly imageModels: readonly (string | null)[]
}

/** The settings of a session that decide what its turns cost. Undefined: the message or event does not contain them. */
export interface SessionSettings {
  readonly id: string | undefined
  readonly model: string | undefined
  /** Null for `inf`. */
  readonly outputTokensMax: number | null | undefined
  /** Null: input audio is not transcribed. The model is null where upstream chooses it. */
  readonly transcription: { readonly model: string | null } | null | undefined
  /** The delegates that are named. */
  readonly delegates: readonly Delegate[]
  /** The format of input audio, and of output audio. */
  readonly bytesPerMs: number | undefined
  readonly spokenBytesPerMs: number | undefined
}

/** A message of the client. */
export type SessionMessage =
  | {
      readonly kind: 'event'
      readonly type: string | null
      readonly eventId: string | null
      readonly session: SessionSettings | null
      /** The settings in a `response.create`. */
      readonly response: Pick<SessionSettings, 'model' | 'outputTokensMax'>
      /** Whether the response is out of band: it does not read the conversation. */
      readonly isOutOfBand: boolean
      /** The length of its audio in base64. An image counts as well: it costs about as much as audio of as many bytes. */
      readonly audioBytes: number
    }
  | { readonly kind: 'unreadable'; readonly detail: string }

const FORMAT = objectOf(scalars('type rate'))
const NAMING = objectOf({ model: TEXT })
const DELEGATE = objectOf({
  model: TEXT,
  service_tier: TEXT,
  tools: sparseArrayOf(objectOf(scalars('type model'))),
})
const SESSION = objectOf({
  ...scalars('id model max_output_tokens max_response_output_tokens'),
  audio: objectOf({
    format: FORMAT,
    input: objectOf({ format: FORMAT, transcription: NAMING }),
    output: objectOf({ format: FORMAT }),
  }),
  input_audio_transcription: NAMING,
  delegation: objectOf({ type: TEXT, responses: DELEGATE, decisions: DELEGATE }),
  triggers: sparseArrayOf(objectOf(scalars('type event_type'))),
})

const ITEM = objectOf({
  content: sparseArrayOf(objectOf({ audio: handedOver(TEXT), image_url: handedOver(TEXT) })),
})
const MESSAGE = objectOf({
  ...scalars('type event_id'),
  session: SESSION,
  item: ITEM,
  response: objectOf({
    ...scalars('model max_output_tokens max_response_output_tokens conversation'),
    input: sparseArrayOf(ITEM),
  }),
  audio: handedOver(TEXT),
})

/** Reads the parts of a message that decide what becomes of it. The rest, mostly audio, is passed over. */
export function sessionMessage(text: Buffer): SessionMessage | Promise<SessionMessage> {
  let handedBytes = 0
  const walker = new JsonWalker(MESSAGE, {
    onBytes: (bytes) => {
      handedBytes += bytes.length
    },
  })
  if (text.length > PIECE_BYTES) {
    const read = writeInPieces(text, (piece) => walker.write(piece))
    return read.then(() => readMessage(walker, handedBytes))
  }
  walker.write(text)
  return readMessage(walker, handedBytes)
}

function readMessage(walker: JsonWalker, handedBytes: number): SessionMessage {
  const scan = walker.end()
  if (scan.kind === 'unreadable') return { kind: 'unreadable', detail: unreadable(scan.reason).detail }
  const [twice] = scan.picked.duplicates
  if (twice !== undefined) return { kind: 'unreadable', detail: givenTwice(twice).detail }
  const event = objectAt(scan.picked.value)
  const odd = oddName(event)
  if (odd !== null) return { kind: 'unreadable', detail: `"${odd}" must be a string.` }
  const older = olderBeside(objectAt(event['session'])) ?? olderBeside(objectAt(event['response']))
  if (older !== null) return { kind: 'unreadable', detail: `"${older}" is there under its newer name too.` }
  const type = nameAt(event['type'])
  if (type === 'response.create' && 'session' in event)
    return { kind: 'unreadable', detail: '"session" has no place in a response.create.' }
  return {
    kind: 'event',
    type,
    eventId: nameAt(event['event_id']),
    session: isObject(event['session']) ? readSettings(event['session']) : null,
    response: readSettings(objectAt(event['response'])),
    isOutOfBand: isBeside(objectAt(event['response'])),
    audioBytes: bytesOfText(handedBytes),
  }
}

function isBeside({ conversation, input }: WireObject): boolean {
  return conversation === 'none' || input !== undefined
}

/** Which of two names counts depends on the version that upstream speaks. */
function olderBeside(settings: WireObject): string | null {
  const input = objectAt(objectAt(settings['audio'])['input'])
  if ('transcription' in input && 'input_audio_transcription' in settings) return 'input_audio_transcription'
  const isTwice = 'max_output_tokens' in settings && 'max_response_output_tokens' in settings
  return isTwice ? 'max_response_output_tokens' : null
}

/** Upstream may take something else for a name than what is read here. */
function oddName(event: WireObject): string | null {
  const { model, audio, input_audio_transcription: older, delegation } = objectAt(event['session'])
  const { transcription } = objectAt(objectAt(audio)['input'])
  const names: Readonly<Record<string, unknown>> = {
    type: event['type'],
    'session.model': model,
    'session.audio.input.transcription.model': objectAt(transcription)['model'],
    'session.input_audio_transcription.model': objectAt(older)['model'],
    'session.delegation.responses.model': objectAt(objectAt(delegation)['responses'])['model'],
    'session.delegation.decisions.model': objectAt(objectAt(delegation)['decisions'])['model'],
    'response.model': objectAt(event['response'])['model'],
  }
  for (const name in names) {
    const value = names[name] ?? null
    if (value !== null && nameAt(value) === null) return name
  }
  return null
}

function readSettings(session: WireObject): SessionSettings {
  const audio = objectAt(session['audio'])
  const input = objectAt(audio['input'])
  const format = input['format'] ?? audio['format']
  const spoken = objectAt(audio['output'])['format'] ?? audio['format']
  // The second of each is what it was called before.
  const { max_output_tokens: most = session['max_response_output_tokens'] } = session
  const written = 'transcription' in input ? input['transcription'] : session['input_audio_transcription']
  return {
    id: nameAt(session['id']) ?? undefined,
    model: nameAt(session['model']) ?? undefined,
    outputTokensMax: most === undefined ? undefined : typeof most === 'number' ? most : null,
    transcription: written === undefined ? undefined : transcriptionOf(written),
    delegates: delegatesOf(objectAt(session['delegation']), session['triggers']),
    bytesPerMs: isObject(format) ? bytesPerMs(format) : undefined,
    spokenBytesPerMs: isObject(spoken) ? bytesPerMs(spoken) : undefined,
  }
}

/** What a client does by itself costs nothing here. Triggers have decisions made and name no model. */
function delegatesOf(delegation: WireObject, triggers: unknown): readonly Delegate[] {
  return (['responses', 'decisions'] as const).flatMap((kind) => {
    const isTriggered = kind === 'decisions' && Array.isArray(triggers) && triggers.length > 0
    if (delegation['type'] !== kind && !isObject(delegation[kind]) && !isTriggered) return []
    const { model, service_tier: tier, tools } = objectAt(delegation[kind])
    return [{ kind, model: nameAt(model), serviceTier: nameAt(tier), imageModels: imageModelsOf(tools) }]
  })
}

function imageModelsOf(tools: unknown): readonly (string | null)[] {
  if (!Array.isArray(tools)) return []
  const drawing = tools.map(objectAt).filter(({ type }) => type === 'image_generation')
  return drawing.map(({ model }) => nameAt(model))
}

function transcriptionOf(value: unknown): { readonly model: string | null } | null {
  return value === null ? null : { model: nameAt(objectAt(value)['model']) }
}

/** 16 bits a sample, or 8 at the rate of a telephone. */
function bytesPerMs({ type, rate }: WireObject): number {
  if (type === 'audio/pcmu' || type === 'audio/pcma') return 8
  return typeof rate === 'number' && rate >= 1_000 ? (rate * 2) / 1_000 : PCM_BYTES_PER_MS
}

/** The length of a JSON string without its quotes. */
function bytesOfText(written: number): number {
  return Math.max(0, written - 2)
}

/** The duration of audio of so many bytes in base64. */
export function audioMs(base64Bytes: number, bytesPerMs: number): number {
  return (base64Bytes * 3) / 4 / bytesPerMs
}

/** An event of upstream. */
export interface SessionEvent {
  readonly type: string
  readonly responseId: string | null
  /** The status of a response. */
  readonly status: string | null
  readonly itemId: string | null
  readonly usage: unknown
  readonly session: SessionSettings | null
  /** The id of the client's event that it answers. */
  readonly aboutEventId: string | null
  /** The length of its `delta`. */
  readonly deltaBytes: number
}

const MODALITIES = 'text_tokens audio_tokens image_tokens'
const USAGE = objectOf({
  ...scalars('type total_tokens input_tokens output_tokens seconds'),
  input_token_details: objectOf({
    ...scalars(`${MODALITIES} cached_tokens`),
    cached_tokens_details: objectOf(scalars(MODALITIES)),
  }),
  output_token_details: objectOf(scalars(MODALITIES)),
})
const EVENT = objectOf({
  ...scalars('type response_id item_id client_event_id'),
  response: objectOf({ id: SCALAR, status: SCALAR, usage: USAGE }),
  usage: USAGE,
  session: SESSION,
  error: objectOf(scalars('event_id client_event_id')),
  delta: handedOver(TEXT),
})

/** Null for a message that is no event. */
export function sessionEvent(text: Buffer): SessionEvent | null {
  let handedBytes = 0
  const walker = new JsonWalker(EVENT, {
    tolerant: true,
    onBytes: (bytes) => {
      handedBytes += bytes.length
    },
  })
  walker.write(text)
  const scan = walker.end()
  if (scan.kind === 'unreadable') return null
  const event = scan.picked.value as PickedObject
  const response = objectAt(event['response'])
  const error = objectAt(event['error'])
  return {
    type: nameAt(event['type']) ?? '',
    responseId: nameAt(response['id']) ?? nameAt(event['response_id']),
    status: nameAt(response['status']),
    itemId: nameAt(event['item_id']),
    usage: response['usage'] ?? event['usage'] ?? null,
    session: isObject(event['session']) ? readSettings(event['session']) : null,
    aboutEventId:
      nameAt(error['event_id']) ?? nameAt(error['client_event_id']) ?? nameAt(event['client_event_id']),
    deltaBytes: bytesOfText(handedBytes),
  }
}

/** Whether the `delta` of an event is audio; else it is text. */
export function isAudioDelta(type: string): boolean {
  return type.endsWith('audio.delta')
}
