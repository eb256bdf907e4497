import {
  eachShape,
  isObject,
  type JsonObject,
  objectShape,
  SIZE,
  scalars,
  VALUE,
} from '../metering/json-shape.ts'
import { JsonSkim } from '../metering/json-skim.ts'
import { readJson } from '../metering/meter.ts'
import type { ReadingPace } from '../metering/reading-pace.ts'
import type { RequestProfile } from '../pricing/request-profile.ts'
import { givenTwice, unreadable } from './ambiguity.ts'
import { PCM_BYTES_PER_MS } from './chat/audio.ts'
import type { Endpoint } from './endpoint.ts'
import { findEndpoint } from './find-endpoint.ts'
import { profileRequest, type UpstreamTerms } from './profile-request.ts'
import { asName, asObject, bytesWritten } from './reading.ts'
import { MODEL_NAME_CHARS_MAX, NOT_READ } from './request-facts.ts'

export type SessionMessage =
  | {
      readonly kind: 'event'
      readonly type: string
      readonly eventId: string | null
      readonly session: SessionSettings | null
      readonly responseModel: string | null
      /** The number of base64 bytes of audio. Images count too, because they cost about as much per byte. */
      readonly audioBytes: number
    }
  | { readonly kind: 'unreadable'; readonly detail: string }

const FORMAT = objectShape(scalars('type rate'))
const NAMING = objectShape(scalars('model'))
const SESSION = objectShape({
  ...scalars('model'),
  audio: objectShape({
    input: objectShape({ format: FORMAT, transcription: NAMING }),
    output: objectShape({ format: FORMAT }),
  }),
  input_audio_transcription: NAMING,
})
const ITEM = objectShape({ content: eachShape(objectShape({ audio: SIZE, image_url: SIZE })) })
const MESSAGE = objectShape({
  ...scalars('type event_id'),
  session: SESSION,
  item: ITEM,
  response: objectShape({ ...scalars('model'), input: eachShape(ITEM) }),
  audio: SIZE,
})

/** Reads the parts of a message that matter for admission. The rest, mostly audio, is skipped. */
export async function sessionMessage(text: Buffer, pace: ReadingPace): Promise<SessionMessage> {
  let contentBytes = 0
  const skim = new JsonSkim(MESSAGE, {
    onElement({ value }) {
      const { audio, image_url: image } = asObject(value)
      contentBytes += bytesWritten(audio) + bytesWritten(image)
    },
  })
  await pace.readInPieces(text, (piece) => pace.read(() => skim.write(piece)))
  return readMessage(skim, contentBytes)
}

function readMessage(skim: JsonSkim, contentBytes: number): SessionMessage {
  const skimmed = skim.end()
  if (skimmed.kind === 'unreadable') return { kind: 'unreadable', detail: unreadable(skimmed.reason).detail }
  const [twice] = skimmed.duplicates
  if (twice !== undefined) return { kind: 'unreadable', detail: givenTwice(twice).detail }
  const event = skimmed.value
  const type = asName(event['type'])
  if (type === null) return { kind: 'unreadable', detail: 'A message must have exactly one string "type".' }
  const name = ambiguousName(event)
  if (name !== null)
    return { kind: 'unreadable', detail: `"${name}" must be a string and must be given once.` }
  return {
    kind: 'event',
    type,
    eventId: asName(event['event_id']),
    session: isObject(event['session']) ? readSettings(event['session']) : null,
    responseModel: asName(asObject(event['response'])['model']),
    audioBytes: contentBytes + bytesWritten(event['audio']),
  }
}

/** A model that upstream may read differently: not a string, or also given under its older name. */
function ambiguousName(event: JsonObject): string | null {
  const { model, audio, input_audio_transcription: older } = asObject(event['session'])
  const { transcription } = asObject(asObject(audio)['input'])
  const names: Readonly<Record<string, unknown>> = {
    'session.model': model,
    'session.audio.input.transcription.model': asObject(transcription)['model'],
    'session.input_audio_transcription.model': asObject(older)['model'],
    'response.model': asObject(event['response'])['model'],
  }
  for (const name in names) {
    const value = names[name] ?? null
    if (value !== null && asName(value) === null) return name
  }
  const isTwice = transcription !== undefined && older !== undefined
  return isTwice ? 'session.input_audio_transcription.model' : null
}

/** Session settings that affect the cost. Undefined: the message or event does not have the setting. */
export interface SessionSettings {
  readonly model: string | undefined
  /** Null: input audio is not transcribed. If the model is null, upstream chooses it. */
  readonly transcription: { readonly model: string | null } | null | undefined
  readonly bytesPerMs: number | undefined
  readonly spokenBytesPerMs: number | undefined
}

function readSettings(session: JsonObject): SessionSettings {
  const audio = asObject(session['audio'])
  const input = asObject(audio['input'])
  const { format: spoken } = asObject(audio['output'])
  const named = 'transcription' in input ? input['transcription'] : session['input_audio_transcription']
  return {
    model: asName(session['model']) ?? undefined,
    transcription:
      named === undefined || named === null ? named : { model: asName(asObject(named)['model']) },
    bytesPerMs: isObject(input['format']) ? bytesPerMs(input['format']) : undefined,
    spokenBytesPerMs: isObject(spoken) ? bytesPerMs(spoken) : undefined,
  }
}

/** 16 bits per sample, or 8 at telephone rate. */
function bytesPerMs({ type, rate }: JsonObject): number {
  if (type === 'audio/pcmu' || type === 'audio/pcma') return 8
  return typeof rate === 'number' && rate >= 1_000 ? (rate * 2) / 1_000 : PCM_BYTES_PER_MS
}

export function audioMs(base64Bytes: number, bytesPerMs: number): number {
  return (base64Bytes * 3) / 4 / bytesPerMs
}

const EVENT = objectShape({
  ...scalars('type response_id item_id'),
  response: objectShape({ ...scalars('id status'), usage: VALUE }),
  usage: VALUE,
  session: SESSION,
  error: objectShape(scalars('event_id')),
  delta: SIZE,
})

export function sessionEvent(text: Buffer) {
  const document = readJson(EVENT, text)
  if (!isObject(document?.value)) return null
  const event = document.value
  const response = asObject(event['response'])
  return {
    type: asName(event['type']) ?? '',
    responseId: asName(response['id']) ?? asName(event['response_id']),
    status: asName(response['status']),
    itemId: asName(event['item_id']),
    usage: response['usage'] ?? event['usage'] ?? null,
    session: isObject(event['session']) ? readSettings(event['session']) : null,
    aboutEventId: asName(asObject(event['error'])['event_id']),
    deltaBytes: bytesWritten(event['delta']),
  }
}

/** A Realtime turn, or a transcription of its input, whose cost no request bounds. */
export interface SocketTurn {
  readonly kind: 'realtime' | 'transcription'
  readonly model: string | null
  readonly atMs: number
}

const PATH = '/v1/realtime'
export const REALTIME = findEndpoint('chat', 'WS', PATH) as Endpoint & { readonly billing: 'metered' }

/** Audio that a standing hold covers. Speech without a pause for so long costs more than its hold. */
const TRANSCRIBED_MS_MAX = 15 * 60_000

/** Upstream stores the conversation, so a turn may read a full context window. */
export function turnProfile({ kind, model }: SocketTurn, terms: UpstreamTerms): RequestProfile {
  const request = { surface: 'chat', path: PATH, endpoint: REALTIME, facts: NOT_READ, bodyBytes: 0 } as const
  return {
    ...profileRequest(request, terms),
    model: model?.slice(0, MODEL_NAME_CHARS_MAX) ?? null,
    usesDefaultModel: false,
    audioMsMax: TRANSCRIBED_MS_MAX,
    mayTranscribe: kind === 'realtime',
    serviceTier: 'default',
  }
}
