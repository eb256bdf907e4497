import { Histogram } from '../kernel/histogram.ts'

/** The load of the store, for the metrics. Counted since the start, by this process alone. */
export interface StoreLoad {
  /** Admissions and settlements per transaction. */
  readonly batchCalls: Histogram
  /** How long such a transaction took: with SQLite its fsync, with PostgreSQL the round trip and all locks. */
  readonly commitSeconds: Histogram
  /** Commands that wait for their turn now. */
  readonly waiting: number
  /** Events recorded, by type. */
  readonly events: ReadonlyMap<string, number>
}

const BATCH_CALLS_BOUNDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000]
const COMMIT_SECONDS_BOUNDS = [
  ...[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05],
  ...[0.1, 0.25, 0.5, 1, 2.5],
]

/** The counts of transactions; a thread that commits them is given the memory. */
export class CommitCounts {
  readonly batchCalls: Histogram
  readonly commitSeconds: Histogram

  constructor(memory?: CommitMemory) {
    this.batchCalls = new Histogram(BATCH_CALLS_BOUNDS, memory?.batchCalls)
    this.commitSeconds = new Histogram(COMMIT_SECONDS_BOUNDS, memory?.commitSeconds)
  }

  /** A transaction without a call is not counted. */
  committed(calls: number, ms: number): void {
    if (calls === 0) return
    this.batchCalls.observe(calls)
    this.commitSeconds.observe(ms / 1_000)
  }
}

export interface CommitMemory {
  readonly batchCalls: SharedArrayBuffer
  readonly commitSeconds: SharedArrayBuffer
}

export function sharedCommitMemory(): CommitMemory {
  return {
    batchCalls: Histogram.sharedMemory(BATCH_CALLS_BOUNDS),
    commitSeconds: Histogram.sharedMemory(COMMIT_SECONDS_BOUNDS),
  }
}
