import { NO_USAGE, type Usage } from '../../kernel/usage.ts'
import { objectOf, scalars } from '../../metering/json-place.ts'
import type { ReplyReader, Stage } from '../../metering/meter.ts'
import { NOTHING_SHOWN, type Reading, type ReplyDocument, type ReplyLayout } from '../../metering/meter.ts'
import type { RequestFacts } from '../../metering/request-facts.ts'
import type { Endpoint } from '../endpoint.ts'
import { memberGetter } from '../request-members.ts'
import { Counts, isObject, nameAt, objectAt, quantitiesOf, readingOf } from '../usage/reading.ts'
import { ERROR, errorNameOf } from './tokens.ts'

/** The video that a request asks for. It is kept with the call, because the finished video does not repeat all of it. */
export interface VideoAsked {
  /** Null where nothing says how long the video will be. */
  readonly milliseconds: number | null
  readonly size: string | null
  /** The video goes on from another one. When it is done, it states the length of both. */
  readonly extends: boolean
}

/** The length and size of the video that upstream makes if the request leaves them out. */
const DEFAULT_MILLISECONDS = 4_000
const DEFAULT_SIZE = '720x1280'

/** `source` is the video that the new one is made from, as upstream shows it: without one, its length is not known. */
export function videoAsked({ template }: Endpoint, facts: RequestFacts, source: Usage | null): VideoAsked {
  const extending = template === '/v1/videos/extensions'
  if (template === '/v1/videos') {
    const size = stated(facts, 'size')
    return {
      milliseconds: millisecondsOf(stated(facts, 'seconds'), DEFAULT_MILLISECONDS),
      size: size === undefined ? DEFAULT_SIZE : (nameAt(size) ?? UNREADABLE_SIZE),
      extends: false,
    }
  }
  const milliseconds = extending ? millisecondsOf(stated(facts, 'seconds'), null) : lengthOf(source)
  return { milliseconds, size: source?.videoSize ?? null, extends: extending }
}

/** No known size has this name, so the video is rated like the dearest size. */
const UNREADABLE_SIZE = '?'

/** The id of the video that a request is to make another one from, where it names one. */
export function sourceOf({ template }: Endpoint, path: string, facts: RequestFacts): string | null {
  if (template === '/v1/videos/{video_id}/remix') return path.split('/')[3] ?? null
  if (facts.kind === 'form') {
    const field = facts.scan.fields.get('video[id]')
    return field?.kind === 'text' ? field.value : null
  }
  const video = memberGetter(facts)('video')
  return video?.kind === 'object' ? nameAt(objectAt(JSON.parse(video.json))['id']) : null
}

/** The value of a member: undefined where it was left out, null where it is there and cannot be read. */
function stated(facts: RequestFacts, name: 'seconds' | 'size'): string | number | null | undefined {
  if (facts.kind === 'not_read') return undefined
  if (facts.kind === 'form') {
    const field = facts.scan.fields.get(name)
    return field === undefined || field.kind === 'text' ? field?.value : null
  }
  if (facts.kind !== 'json') return null
  const member = facts.scan.members.get(name)
  if (member === undefined || member.kind === 'null') return undefined
  return member.kind === 'string' || member.kind === 'number' ? member.value : null
}

/** Upstream writes seconds as a string, and may take them as a number. */
function millisecondsOf(seconds: unknown, leftOut: number | null): number | null {
  if (seconds === undefined) return leftOut
  const text = typeof seconds === 'number' ? String(seconds) : seconds
  if (typeof text !== 'string' || !/^\d{1,6}(?:\.\d{1,3})?$/.test(text)) return null
  return Math.round(Number(text) * 1_000) || null
}

function lengthOf(usage: Usage | null): number | null {
  return usage?.parts[0]?.quantities.video_output_milliseconds ?? null
}

/** The usage of a finished video as it is paid for: the request adds what the video does not state itself. */
export function videoUsage(usage: Usage, { milliseconds, size, extends: extending }: VideoAsked): Usage {
  if (usage.stopReason !== 'completed') return usage
  const whole = lengthOf(usage)
  const paid = extending ? (milliseconds ?? whole) : (whole ?? milliseconds)
  return videoOf(usage, paid, usage.videoSize ?? size)
}

export function videoOf(usage: Usage, milliseconds: number | null, size: string | null): Usage {
  const quantities = quantitiesOf({ video_output_milliseconds: milliseconds })
  const parts = [{ model: null, quantities, promptTokens: 0 }]
  return { ...usage, parts, ...(size === null ? {} : { videoSize: size }) }
}

const VIDEO = objectOf({ ...scalars('id model status seconds size'), error: ERROR })
const LAYOUT: ReplyLayout = { body: VIDEO, event: VIDEO, noise: new Set(), dullEvents: [] }

/** Reads a video, as POST /v1/videos and the other endpoints that make one answer it, and as GET /v1/videos/{video_id} does. */
export class VideoReader implements ReplyReader {
  readonly layout = LAYOUT
  readonly shown = NOTHING_SHOWN
  readonly #counts = new Counts()
  stage: Stage = 'content'
  #id: string | null = null
  #error: string | null = null
  #usage: Usage = NO_USAGE

  readDone(): void {}

  readEvent(): null {
    return null
  }

  readText(): void {}

  readBody(document: ReplyDocument): void {
    const video = objectAt(document.value)
    const status = nameAt(video['status'])
    if (document.repeatsNames) this.#counts.doubt()
    this.#id = nameAt(video['id'])
    if (isObject(video['error'])) this.#error = errorNameOf(video['error'])
    const milliseconds = millisecondsOf(video['seconds'] ?? undefined, null)
    // A video that failed costs nothing.
    if (status === 'completed' && milliseconds === null) this.#counts.doubt()
    const made = { ...NO_USAGE, modelServed: nameAt(video['model']), stopReason: status }
    this.#usage = videoOf(made, status === 'failed' ? null : milliseconds, nameAt(video['size']))
    this.stage = 'over'
  }

  reading(): Reading {
    const isDone = this.#usage.stopReason === 'completed' || this.#usage.stopReason === 'failed'
    return readingOf({
      usage: this.#usage,
      parts: this.#usage.parts,
      inputKnown: true,
      outputKnown: isDone,
      outputTokensSeen: 0,
      suspect: this.#counts.suspect,
      error: this.#error,
      objectId: this.#id,
    })
  }
}
