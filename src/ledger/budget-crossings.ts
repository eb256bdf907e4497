/** Which thresholds of its cap a key's month crosses. The function of PostgreSQL that settles calls says the same in SQL. */

/** The threshold of the cap itself, which is always told. */
export const CAP_PERCENT = 100

export interface SpentCall {
  readonly requestId: string
  readonly costNanos: bigint
  readonly atMs: number
}

export interface Crossing {
  readonly percent: number
  /** The call that crossed the threshold, and the sum spent with that call. */
  readonly call: SpentCall
  readonly spentNanos: bigint
}

/**
 * The sum spent only ever grows, so a threshold of one cap is crossed at most once in a month, whatever the cap was
 * meanwhile: nothing has to be remembered. A call that crosses several is told for each, from the lowest on.
 */
export function budgetCrossings(
  capNanos: bigint,
  spentBeforeNanos: bigint,
  calls: readonly SpentCall[],
  thresholds: readonly number[],
): readonly Crossing[] {
  const percents = [...new Set([...thresholds, CAP_PERCENT])].sort((a, b) => a - b)
  const crossings: Crossing[] = []
  let before = spentBeforeNanos
  for (const call of calls) {
    const spentNanos = before + call.costNanos
    for (const percent of percents) {
      const threshold = capNanos * BigInt(percent)
      if (before * 100n < threshold && threshold <= spentNanos * 100n)
        crossings.push({ percent, call, spentNanos })
    }
    before = spentNanos
  }
  return crossings
}
