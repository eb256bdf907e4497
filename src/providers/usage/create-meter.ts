import {
  GuardedMeter,
  type Meter,
  type ReplyReader,
  SilentMeter,
  type SniffedForm,
  SniffingMeter,
} from '../../metering/meter.ts'
import { OutputText } from '../../metering/output-text.ts'
import { BodyMeter, StreamMeter } from '../../metering/reply-meter.ts'
import type { UsageReader } from '../endpoint.ts'
import { audioMeter, SpeechEventsMeter } from './audio-meters.ts'
import { ChatReader } from './chat.ts'
import { embeddingsReader } from './embeddings.ts'
import { imagesReader } from './images.ts'
import { MessagesReader } from './messages.ts'
import { ResponsesReader } from './responses.ts'
import { speechReader } from './speech.ts'
import { transcriptionReader } from './transcription.ts'

export interface ReplyHead {
  readonly status: number
  readonly contentType: string | undefined
}

/**
 * The meter for a reply of a metered endpoint. What the reply is decides, not what was asked for: a stream may be
 * answered with a document and the reverse. Servers that name neither type, or none, are told by how the reply begins.
 * Errors, audio and pictures say nothing about usage.
 */
export function createMeter(usage: UsageReader, reply: ReplyHead): Meter {
  const form = formOf(reply)
  if (form === 'silent') return new SilentMeter()
  const other = () => otherMeter(usage, reply.contentType)
  // Bare samples may begin with any byte, that of a document too.
  if (form === 'media' || (usage === 'speech' && BYTES.test(reply.contentType ?? ''))) return other()
  if (form !== 'unnamed') return meterOf(usage, form) ?? new SilentMeter()
  return new SniffingMeter((sniffed) => (sniffed === 'other' ? null : meterOf(usage, sniffed)) ?? other())
}

/** For what is neither a document nor events. */
function otherMeter(usage: UsageReader, contentType: string | undefined): Meter {
  const meter = audioMeter(usage, contentType)
  return meter === null ? new SilentMeter() : new GuardedMeter(meter)
}

/** Null for what is not a reply but goes over a socket. */
function meterOf(usage: UsageReader, form: SniffedForm): Meter | null {
  const output = new OutputText()
  const reader = readerFor(usage, output)
  if (reader === null) return null
  const meter = form === 'events' ? new StreamMeter(reader, output) : new BodyMeter(reader, output)
  return new GuardedMeter(usage === 'speech' && form === 'events' ? new SpeechEventsMeter(meter) : meter)
}

const EVENTS = /^\s*text\/event-stream\s*(?:;|$)/i
const JSON_TYPE = /^\s*(?:(?:application|text)\/json|[^;,\s]*\+json)(?:[;,\s]|$)/i
const MEDIA = /^\s*(?:audio|image|video|font)\//i
const BYTES = /^\s*application\/octet-stream\b/i

export function isJsonType(contentType: string): boolean {
  return JSON_TYPE.test(contentType)
}

function formOf({ status, contentType = '' }: ReplyHead): SniffedForm | 'unnamed' | 'media' | 'silent' {
  if (status < 200 || status > 299) return 'silent'
  if (JSON_TYPE.test(contentType)) return 'json'
  if (EVENTS.test(contentType)) return 'events'
  return MEDIA.test(contentType) ? 'media' : 'unnamed'
}

function readerFor(usage: UsageReader, output: OutputText): ReplyReader | null {
  switch (usage) {
    case 'messages':
      return new MessagesReader(output)
    case 'chat':
    case 'completions':
      return new ChatReader(output)
    case 'responses':
    case 'compaction':
    case 'decisions':
      return new ResponsesReader(output)
    case 'embeddings':
      return embeddingsReader(output)
    case 'images':
      return imagesReader(output)
    case 'speech':
      return speechReader(output)
    case 'transcription':
      return transcriptionReader(output)
    case 'realtime':
    case 'live':
      return null
  }
}
