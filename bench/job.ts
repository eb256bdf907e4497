import type { Surface } from './wire-text.ts'

/** What the load process is asked to do, as one JSON document on its standard input, and what it answers. */

export interface Target {
  /** One for each node: callers are spread over them. */
  readonly urls: readonly string[]
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** Whose processor time and memory are measured. */
  readonly pids: readonly number[]
  /** Whose processor time is that of the load: the upstream. */
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
  /** A file with an API key on each line: every request uses another one of the first so many. */
  readonly keys?: { readonly file: string; readonly inUse: number }
}

/** Streams that run side by side. */
export interface StreamsJob extends Target {
  readonly kind: 'streams'
  readonly surface: Surface
  readonly streams: number
  readonly eventsPerStream: number
  /** Over how long they are opened. */
  readonly rampSeconds: number
  /** How long all of them run before the measuring begins. */
  readonly warmUpSeconds: number
  readonly seconds: number
  /** So many more, which hang up when the measuring is over, before they are complete. */
  readonly leavers?: number
}

/** Reports that one caller asks for, each path in turn. */
export interface ReportsJob extends Target {
  readonly kind: 'reports'
  readonly paths: readonly string[]
  readonly seconds: number
}

/** WebSockets, which say nothing, have one long turn each, or one turn after the other. */
export interface SocketsJob extends Target {
  readonly kind: 'idle-sockets' | 'streaming-sockets' | 'busy-sockets'
  readonly sockets: number
  readonly eventsPerTurn: number
  readonly rampSeconds: number
  readonly warmUpSeconds: number
  readonly seconds: number
}

export type Job = RequestsJob | StreamsJob | ReportsJob | SocketsJob

export type Figures = Readonly<Record<string, number>>

/** The headers that a run's own key is put into where every request uses another one. */
export const KEY_HEADER = 'x-api-key'
