import type { Surface } from '../wire-text.ts'

/** What a subject is started with. */
export interface Setting {
  readonly upstreamUrl: string
  /** A folder of its own on a disk; gone after the measurement. */
  readonly folder: string
  readonly core: number | null
}

export interface RunningSubject {
  /** One for each node. */
  readonly urls: readonly string[]
  headers(surface: Surface): readonly (readonly [name: string, value: string])[]
  /** All its processes; none for a direct connection. */
  pids(): readonly number[]
  stop(): Promise<void>
}

/** Something that can stand between a caller and the upstream. */
export interface Subject<Running extends RunningSubject = RunningSubject> {
  readonly name: string
  start(setting: Setting): Promise<Running>
}
