import type { Surface } from './wire-text.ts'

/** The job of the load process, one JSON document on its standard input, and the figures that it answers with. */

export interface Target {
  /** One URL for each node: callers are spread over the nodes. */
  readonly urls: readonly string[]
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** The processes whose processor time and memory are measured. */
  readonly pids: readonly number[]
  /** The process of the upstream, whose processor time counts as that of the load. */
  readonly loadPids: readonly number[]
}

/** Callers that each wait for their answer before they ask again. */
export interface RequestsJob extends Target {
  readonly kind: 'requests'
  readonly surface: Surface
  readonly requestBytes: number
  readonly callers: number
  readonly warmUpSeconds: number
  /** On a slow machine the warm-up lasts longer, until so many requests were answered. */
  readonly warmUpRequests: number
  /** Callers of the warm-up, if they are more: one caller alone would take minutes to have all code compiled. */
  readonly warmUpCallers?: number
  readonly seconds: number
  /** A file with an API key on each line: every request uses another of the first `inUse` keys. */
  readonly keys?: { readonly file: string; readonly inUse: number }
}

/** Streams that run side by side. */
export interface StreamsJob extends Target {
  readonly kind: 'streams'
  readonly surface: Surface
  readonly streams: number
  readonly eventsPerStream: number
  /** Over how many seconds the streams are opened. */
  readonly rampSeconds: number
  /** How long all streams run before the measuring begins. */
  readonly warmUpSeconds: number
  readonly seconds: number
  /** How many more streams hang up when the measuring is over, before they are complete. */
  readonly leavers?: number
}

/** Reports that one caller asks for, each path in turn. */
export interface ReportsJob extends Target {
  readonly kind: 'reports'
  readonly paths: readonly string[]
  readonly seconds: number
}

export type Job = RequestsJob | StreamsJob | ReportsJob

export type Figures = Readonly<Record<string, number>>

/** The header of the key where every request uses another key. */
export const KEY_HEADER = 'x-api-key'
