import {
  GuardedMeter,
  type Meter,
  SilentMeter,
  type SniffedForm,
  SniffingMeter,
} from '../../metering/meter.ts'
import { OutputText } from '../../metering/output-text.ts'
import { BodyMeter, StreamMeter } from '../../metering/reply-meter.ts'
import type { UsageReader } from '../endpoint.ts'
import type { ReaderSpec } from '../surface.ts'
import { READERS } from '../surfaces.ts'

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
  const spec = READERS[usage]
  const form = formOf(reply)
  if (form === 'silent' || spec === undefined) return new SilentMeter()
  const other = () => otherMeter(spec, reply.contentType)
  if (form === 'media' || (spec.bareBytes && BYTES.test(reply.contentType ?? ''))) return other()
  if (form !== 'unnamed') return meterOf(spec, form) ?? new SilentMeter()
  return new SniffingMeter((sniffed) => (sniffed === 'other' ? null : meterOf(spec, sniffed)) ?? other())
}

/** For what is neither a document nor events. */
function otherMeter(spec: ReaderSpec, contentType = ''): Meter {
  return spec.other === undefined ? new SilentMeter() : new GuardedMeter(spec.other(contentType))
}

/** Null for what is not a reply but goes over a socket. */
function meterOf(spec: ReaderSpec, form: SniffedForm): Meter | null {
  if (spec.create === null) return null
  const output = new OutputText()
  const reader = spec.create(output)
  if (form !== 'events') return new GuardedMeter(new BodyMeter(reader, output))
  const meter = new StreamMeter(reader, output)
  return new GuardedMeter(spec.wrapEvents?.(meter) ?? meter)
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
