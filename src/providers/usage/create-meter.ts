import { BodyMeter } from '../../metering/body-meter.ts'
import { GuardedMeter, SilentMeter } from '../../metering/guarded-meter.ts'
import type { Meter, ReplyReader } from '../../metering/meter.ts'
import { OutputText } from '../../metering/output-text.ts'
import { StreamMeter } from '../../metering/stream-meter.ts'
import type { UsageReader } from '../endpoint.ts'
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
 * answered with a document and the reverse. Errors and replies of other types say nothing about usage.
 */
export function createMeter(usage: UsageReader, reply: ReplyHead): Meter {
  const form = formOf(reply)
  const output = new OutputText()
  const reader = form === 'other' ? null : readerFor(usage, output)
  if (reader === null) return new SilentMeter()
  return new GuardedMeter(form === 'events' ? new StreamMeter(reader, output) : new BodyMeter(reader, output))
}

const EVENTS = /^\s*text\/event-stream\s*(?:;|$)/i
const JSON_TYPE = /^(?:\s*application\/json|[^;]*\+json)\s*(?:;|$)/i

function formOf({ status, contentType = '' }: ReplyHead): 'events' | 'json' | 'other' {
  if (status < 200 || status > 299) return 'other'
  if (JSON_TYPE.test(contentType)) return 'json'
  return EVENTS.test(contentType) ? 'events' : 'other'
}

/** Null for what is not a reply but goes over a socket. */
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
