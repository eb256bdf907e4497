import type { Nanos } from '../kernel/money.ts'
import type { ChangedCall, RerateCandidate, RerateSelection } from './rerate.ts'

/** The books as `tollgate rerate` works on them, beside whoever serves. */
export interface RerateWriter {
  count(selection: RerateSelection): Promise<number>
  /** The selected calls after an id, in the order of their ids. The empty id comes before all. */
  read(selection: RerateSelection, afterId: string): Promise<readonly RerateCandidate[]>
  /** One transaction. What was booked before, or has changed since it was read, is left out. */
  book(changed: readonly ChangedCall[]): Promise<Booked>
  close(): Promise<void>
}

export interface Booked {
  readonly calls: number
  readonly nanos: Nanos
}
