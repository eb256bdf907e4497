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
import { PCM_BYTES_PER_MS } from './chat/audio.ts'
import { isObject, nameAt, objectAt, type WireObject } from './usage/reading.ts'

/** The settings of a session that its cost depends on. Undefined: the message or event does not contain them. */
export interface SessionSettings {
  readonly model: string | undefined
  /** Null: input audio is not transcribed. The model is null where upstream chooses it. */
  readonly transcription: { readonly model: string | null } | null | undefined
  /** The formats of input audio and of output audio. */
  readonly bytesPerMs: number | undefined
  readonly spokenBytesPerMs: number | undefined
}

/** A message of the client. */
export type SessionMessage =
  | {
      readonly kind: 'event'
      readonly type: string
      readonly eventId: string | null
      readonly session: SessionSettings | null
      /** The model that a `response.create` names. */
      readonly responseModel: string | null
      /** The length of its audio in base64. An image counts as well: it costs about as much as audio of as many bytes. */
      readonly audioBytes: number
    }
  | { readonly kind: 'unreadable'; readonly detail: string }

const FORMAT = objectOf(scalars('type rate'))
const NAMING = objectOf({ model: TEXT })
const SESSION = objectOf({
  model: TEXT,
  audio: objectOf({
    input: objectOf({ format: FORMAT, transcription: NAMING }),
    output: objectOf({ format: FORMAT }),
  }),
  input_audio_transcription: NAMING,
})
const ITEM = objectOf({
  content: sparseArrayOf(objectOf({ audio: handedOver(TEXT), image_url: handedOver(TEXT) })),
})
const MESSAGE = objectOf({
  ...scalars('type event_id'),
  session: SESSION,
  item: ITEM,
  response: objectOf({ model: TEXT, input: sparseArrayOf(ITEM) }),
  audio: handedOver(TEXT),
})

/** Reads the parts of a message that decide what becomes of it. The rest, mostly audio, is skipped. */
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
  const type = nameAt(event['type'])
  if (type === null) return { kind: 'unreadable', detail: 'A message must have one "type", a string.' }
  const odd = oddName(event)
  if (odd !== null) return { kind: 'unreadable', detail: `"${odd}" must be a string, and given once.` }
  return {
    kind: 'event',
    type,
    eventId: nameAt(event['event_id']),
    session: isObject(event['session']) ? readSettings(event['session']) : null,
    responseModel: nameAt(objectAt(event['response'])['model']),
    audioBytes: bytesOfText(handedBytes),
  }
}

/** A model that upstream may read otherwise: no string, or given under its older name too. */
function oddName(event: WireObject): string | null {
  const { model, audio, input_audio_transcription: older } = objectAt(event['session'])
  const { transcription } = objectAt(objectAt(audio)['input'])
  const names: Readonly<Record<string, unknown>> = {
    'session.model': model,
    'session.audio.input.transcription.model': objectAt(transcription)['model'],
    'session.input_audio_transcription.model': objectAt(older)['model'],
    'response.model': objectAt(event['response'])['model'],
  }
  for (const name in names) {
    const value = names[name] ?? null
    if (value !== null && nameAt(value) === null) return name
  }
  const isTwice = transcription !== undefined && older !== undefined
  return isTwice ? 'session.input_audio_transcription.model' : null
}

function readSettings(session: WireObject): SessionSettings {
  const audio = objectAt(session['audio'])
  const input = objectAt(audio['input'])
  const { format: spoken } = objectAt(audio['output'])
  const named = 'transcription' in input ? input['transcription'] : session['input_audio_transcription']
  return {
    model: nameAt(session['model']) ?? undefined,
    transcription:
      named === undefined || named === null ? named : { model: nameAt(objectAt(named)['model']) },
    bytesPerMs: isObject(input['format']) ? bytesPerMs(input['format']) : undefined,
    spokenBytesPerMs: isObject(spoken) ? bytesPerMs(spoken) : undefined,
  }
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

/** An upstream event. */
export interface SessionEvent {
  readonly type: string
  readonly responseId: string | null
  /** The status of a response. */
  readonly status: string | null
  readonly itemId: string | null
  readonly usage: unknown
  readonly session: SessionSettings | null
  /** The id of the client's event that an error is about. */
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
  ...scalars('type response_id item_id'),
  response: objectOf({ id: SCALAR, status: SCALAR, usage: USAGE }),
  usage: USAGE,
  session: SESSION,
  error: objectOf({ event_id: SCALAR }),
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
  return {
    type: nameAt(event['type']) ?? '',
    responseId: nameAt(response['id']) ?? nameAt(event['response_id']),
    status: nameAt(response['status']),
    itemId: nameAt(event['item_id']),
    usage: response['usage'] ?? event['usage'] ?? null,
    session: isObject(event['session']) ? readSettings(event['session']) : null,
    aboutEventId: nameAt(objectAt(event['error'])['event_id']),
    deltaBytes: bytesOfText(handedBytes),
  }
}
