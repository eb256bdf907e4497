import type { JsonObject } from '../json.ts'

export interface Segment {
  readonly text: string
  readonly start: number
  readonly end: number
}

/** The sentences of a transcript, each in its share of the time. */
export function cutIntoSegments(text: string, seconds: number): Segment[] {
  return spread(text.match(/[^.;,]+[.;,]*/g) ?? [text], 0, seconds)
}

export function wordsOf(segments: readonly Segment[]): JsonObject[] {
  return segments.flatMap(({ text, start, end }) =>
    spread(text.split(' ').filter(Boolean), start, end).map(({ text: word, ...times }) => ({
      word,
      ...times,
    })),
  )
}

function spread(texts: readonly string[], start: number, end: number): Segment[] {
  const length = texts.reduce((sum, text) => sum + text.length, 0)
  const perCharacter = length === 0 ? 0 : (end - start) / length
  let at = start
  return texts.map((text) => {
    const from = at
    at += text.length * perCharacter
    return { text: text.trim(), start: round(from), end: round(at) }
  })
}

function round(seconds: number): number {
  return Math.round(seconds * 1_000) / 1_000
}

export function segmentJson({ text, start, end }: Segment, id: number): JsonObject {
  return {
    id,
    seek: 0,
    start,
    end,
    text: ` ${text}`,
    tokens: [],
    temperature: 0,
    avg_logprob: -0.25,
    compression_ratio: 1.2,
    no_speech_prob: 0.01,
  }
}

export function toSrt(segments: readonly Segment[]): string {
  return segments
    .map(
      ({ text, start, end }, index) =>
        `${index + 1}\n${clock(start, ',')} --> ${clock(end, ',')}\n${text}\n\n`,
    )
    .join('')
}

export function toVtt(segments: readonly Segment[]): string {
  const cues = segments.map(
    ({ text, start, end }) => `${clock(start, '.')} --> ${clock(end, '.')}\n${text}\n\n`,
  )
  return `WEBVTT\n\n${cues.join('')}`
}

function clock(seconds: number, point: string): string {
  return new Date(Math.round(seconds * 1_000)).toISOString().slice(11, 23).replace('.', point)
}
