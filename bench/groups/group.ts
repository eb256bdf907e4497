import type { Cores } from '../cores.ts'
import type { Figures } from '../job.ts'
import type { Sizes } from '../sizes.ts'
import type { Subject } from '../subjects/subject.ts'
import type { TollgateParts } from '../subjects/tollgate.ts'

/** One workload on one subject, measured again in every round. */
export interface Case {
  readonly workload: string
  readonly subject: string
  run(): Promise<Figures>
}

/** Cases that are compared with each other and therefore take turns. */
export interface Group {
  readonly title: string
  readonly cases: readonly Case[]
  /** Prepares data that all cases need and that takes long to make: once, before the first round. */
  prepare?(): Promise<void>
  /** The number of rounds; unless given, that of the run. */
  readonly rounds?: number
}

export interface Plan {
  readonly cores: Cores
  readonly sizes: Sizes
  readonly warmUpSeconds: number
  readonly seconds: number
  readonly soakMinutes: number
  /** All subjects that are to be compared, Tollgate among them. */
  readonly subjects: readonly Subject[]
  /** Tollgate alone, in one revision or in two. */
  readonly tollgates: readonly TollgateParts[]
}

export const shortCount = (count: number): string => {
  if (count >= 1_000_000 && count % 1_000_000 === 0) return `${count / 1_000_000}M`
  return count >= 1_000 && count % 1_000 === 0 ? `${count / 1_000}k` : String(count)
}
