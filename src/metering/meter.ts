import type { Borrowed } from '../kernel/read-buffer.ts'
import type { Usage } from '../kernel/usage.ts'
import type { JsonDocument } from './json-document.ts'
import type { TextPlace } from './learn-template.ts'
import type { NameSet } from './name-set.ts'
import type { DeliveredOutput } from './output-text.ts'

/**
 * How far a reply has come.
 * - `content`: more of what the client asked for is to come, as far as can be seen.
 * - `closing`: the content may be complete, the final figures are still to come. A further block or item makes it
 *   `content` again.
 * - `over`: nothing that matters is to come. Leaving now is a normal end.
 */
export type Stage = 'content' | 'closing' | 'over'

/** What a reply has shown so far. It decides what becomes of the call if the client leaves now. */
export interface Shown {
  /** Upstream has said how much input there was. */
  readonly inputKnown: boolean
  /** Tools have run upstream: the model reads their results, and some cost by the call. */
  readonly toolsRan: boolean
  /** The model reasons, and not all of that is shown. */
  readonly reasons: boolean
}

export const NOTHING_SHOWN: Shown = { inputKnown: false, toolsRan: false, reasons: false }

/** Looks at a view of a reply and finds what it says about usage. It never throws and keeps no chunk. */
export interface Meter {
  readonly stage: Stage
  readonly shown: Shown
  /** Bytes of what the model wrote, as far as a stream has shown it. */
  readonly visibleBytes: number
  /** The reply's next bytes, without their content coding. */
  write(chunk: Borrowed): void
  /** The reply ended: `whole`, or cut by whoever. To be called once. */
  end(whole: boolean): Metered
}

export type MeterFault =
  /** Something was longer than anything that is read here, and was not read. */
  | 'too_large'
  /** A document or an event is no JSON. */
  | 'not_json'
  /** The meter itself failed, and read nothing from then on. */
  | 'failed'

/** What a reply that is audio, or the text of some, tells about how long that is. */
export interface AudioSeen {
  /** As it is stated, or as the audio itself tells; null where neither does. */
  readonly milliseconds: number | null
  /** It is at least so long: the last time stamp of subtitles. */
  readonly leastMilliseconds: number
  /** Of audio that came with the reply. */
  readonly bytes: number
}

/** What a reader of one kind of reply found. */
export interface Reading {
  /**
   * What upstream said. The units of a side that is not known are absent from all parts; calls of tools are there
   * in any case. Where a side is not known, the first part is that of the response's own model, maybe empty.
   */
  readonly usage: Usage
  /** Upstream said how much input there was, and that can be true. Else it has to be counted. */
  readonly inputKnown: boolean
  /** Upstream said finally how much output there was, and that can be true. Else it has to be counted. */
  readonly outputKnown: boolean
  /** The output that upstream last spoke of, finally or not: there was at least so much. */
  readonly outputTokensSeen: number
  /** The type or code of the error that upstream reported inside a reply that began well. */
  readonly error: string | null
  /** The id of the message, completion or response: what a later GET of the same names too. */
  readonly objectId: string | null
  /** Images that a tool has begun to draw. What they took stands in the final usage alone. */
  readonly imagesBegun: number
  /** Of replies about audio alone. */
  readonly audio?: AudioSeen
}

export interface Metered extends Reading {
  readonly stage: Stage
  readonly shown: Shown
  readonly output: DeliveredOutput
  readonly faults: readonly MeterFault[]
}

/** What the bytes of a reply look like, known before the first of them. */
export interface ReplyLayout {
  /** The members of a body, and of an event's data, that are looked at. */
  readonly members: NameSet
  /** Members anywhere below that are not, and may be large. */
  readonly ignored: NameSet
  /** Members of an event's data that say nothing and differ from event to event. */
  readonly noise: ReadonlySet<string>
  /** An event whose data begins with these bytes says nothing, and may be large. */
  readonly dullEvents: readonly Buffer[]
}

/** Knows what one kind of reply means. One is made for each call. */
export interface ReplyReader {
  readonly layout: ReplyLayout
  readonly stage: Stage
  readonly shown: Shown
  /**
   * An event of a stream. Answers where its text is, if it has one and reading the event once more would change
   * nothing but add that text again: events that follow and differ from it in nothing else are then not shown.
   */
  readEvent(document: JsonDocument, name: string): TextPlace | null
  /** The mark `[DONE]`, which is no JSON. */
  readDone(): void
  /** A reply that is one document: all that it says, but not what the model wrote. */
  readBody(document: JsonDocument): void
  /** What the model wrote in that document. Asked for only where it has to be counted, which is hardly ever. */
  readText(document: JsonDocument): void
  reading(): Reading
}
