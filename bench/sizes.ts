/** How much of everything. A quick run only shows that all of it works. */
export interface Sizes {
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
  /** Of how many keys each request uses another one: the same among few and many. */
  readonly keysInUse: readonly number[]
  readonly usageCallsFew: number
  readonly usageCallsMany: number
  readonly startCalls: number
}

export const FULL: Sizes = {
  callers: [1, 32, 256],
  requestBytes: 2_000,
  largeBytes: 1_000_000,
  warmUpRequests: 40_000,
  largeCallers: 8,
  eventsPerSecond: 20,
  streamsFew: 300,
  streamsMany: 2_000,
  streamsOpenedPerSecond: 400,
  keys: [1_000, 100_000, 1_000_000],
  keysInUse: [100, 1_000],
  usageCallsFew: 5_000,
  usageCallsMany: 5_000_000,
  startCalls: 1_000_000,
}

export const QUICK: Sizes = {
  ...FULL,
  warmUpRequests: 0,
  streamsFew: 50,
  streamsMany: 200,
  keys: [1_000, 5_000, 20_000],
  usageCallsMany: 50_000,
  startCalls: 20_000,
}
