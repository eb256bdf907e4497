/** What settlement has to know of a call's opening. */
export interface OpenCall {
  readonly accountId: string
  readonly keyId: string
  readonly month: string
  readonly day: string
  readonly modelAsked: string | null
  /** Null for a call from before endpoints were kept. */
  readonly endpoint: string | null
  readonly holdNanos: bigint
  readonly holdListNanos: bigint
}

/**
 * The calls that were opened here and are still in flight, so that closing them need not read them back. It is no
 * authority: the statement that closes a call says itself that it must be in flight, and where it is not, or is not
 * in this map, its row is read.
 */
export type OpenCalls = Map<string, OpenCall>
