import type { Surface } from '../wire-text.ts'

/** The setting that a subject is started with. */
export interface Setting {
  readonly upstreamUrl: string
  /** A folder of the subject's own on a disk; removed after the measurement. */
  readonly folder: string
  readonly core: number | null
}

export interface RunningSubject {
  /** One URL for each node. */
  readonly urls: readonly string[]
  headers(surface: Surface): readonly (readonly [name: string, value: string])[]
  /** All processes of the subject; none for a direct connection. */
  pids(): readonly number[]
  stop(): Promise<void>
}

/** Something that can stand between a caller and the upstream. */
export interface Subject<Running extends RunningSubject = RunningSubject> {
  readonly name: string
  start(setting: Setting): Promise<Running>
}
