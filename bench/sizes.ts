/** How many keys the requests use in turn, the same number among few keys and among many, and what the others have done. */
export interface KeysInUse {
  readonly count: number
  /** All keys were used earlier in the day, and have their figures of the month and the day. Else the keys only exist. */
  readonly allUsedToday: boolean
}

/** The sizes of all workloads. A quick run only shows that every workload works. */
export interface Sizes {
  /** Nodes on one PostgreSQL. */
  readonly manyNodes: readonly number[]
  readonly callers: readonly [one: number, some: number, many: number]
  readonly requestBytes: number
  readonly largeBytes: number
  readonly warmUpRequests: number
  /** Callers with large bodies. */
  readonly largeCallers: number
  readonly eventsPerSecond: number
  readonly streamsFew: number
  readonly streamsMany: number
  /** How fast streams are opened. */
  readonly streamsOpenedPerSecond: number
  readonly keys: readonly [few: number, more: number, most: number]
  readonly keysInUse: readonly KeysInUse[]
  readonly accounts: readonly [few: number, many: number]
  readonly people: readonly [few: number, many: number]
  readonly usageCallsFew: number
  readonly usageCallsMany: number
  readonly startCalls: number
}

export const FULL: Sizes = {
  manyNodes: [10, 50],
  callers: [1, 32, 256],
  requestBytes: 2_000,
  largeBytes: 1_000_000,
  warmUpRequests: 80_000,
  largeCallers: 8,
  eventsPerSecond: 20,
  streamsFew: 300,
  streamsMany: 2_000,
  streamsOpenedPerSecond: 400,
  keys: [1_000, 100_000, 1_000_000],
  keysInUse: [
    { count: 1_000, allUsedToday: false },
    { count: 100, allUsedToday: true },
    { count: 1_000, allUsedToday: true },
  ],
  accounts: [1, 10_000],
  people: [10, 10_000],
  usageCallsFew: 5_000,
  usageCallsMany: 5_000_000,
  startCalls: 1_000_000,
}

export const QUICK: Sizes = {
  ...FULL,
  manyNodes: [10],
  warmUpRequests: 0,
  streamsFew: 50,
  streamsMany: 200,
  keys: [1_000, 5_000, 20_000],
  accounts: [1, 100],
  people: [10, 100],
  usageCallsMany: 50_000,
  startCalls: 20_000,
}
