import type { Cores } from '../cores.ts'
import type { Figures } from '../job.ts'
import type { Sizes } from '../sizes.ts'
import type { Subject } from '../subjects/subject.ts'
import type { TollgateParts } from '../subjects/tollgate.ts'

export interface Sample {
  readonly atSeconds: number
  readonly memoryMb: number
}

/** One thing to measure, again in every round. */
export interface Case {
  readonly workload: string
  readonly subject: string
  /** A long run also tells what it sees on its way. */
  run(keepSample: (sample: Sample) => void): Promise<Figures>
}

/** Cases that are compared with each other and therefore take turns. */
export interface Group {
  readonly title: string
  readonly cases: readonly Case[]
  /** What all cases need and what takes long: made once, before the first round. */
  prepare?(): Promise<void>
  /** Unless given, as many as the run was asked for. */
  readonly rounds?: number
}

export interface Plan {
  readonly cores: Cores
  readonly sizes: Sizes
  readonly warmUpSeconds: number
  readonly seconds: number
  readonly soakMinutes: number
  /** All that are to be compared, Tollgate among them. */
  readonly subjects: readonly Subject[]
  /** Tollgate alone, in one revision or in two. */
  readonly tollgates: readonly TollgateParts[]
}

export const shortCount = (count: number): string => {
  if (count >= 1_000_000 && count % 1_000_000 === 0) return `${count / 1_000_000}M`
  return count >= 1_000 && count % 1_000 === 0 ? `${count / 1_000}k` : String(count)
}
