/** How the service calls itself on the wire: the headers it adds, and what its keys look like. */
export interface HeaderNames {
  readonly requestId: string
  readonly upstreamMs: string
  readonly costUsd: string
  readonly listCostUsd: string
  readonly balanceUsd: string
  readonly budgetSpentUsd: string
  readonly budgetHeldUsd: string
  readonly budgetCapUsd: string
  readonly budgetResetsAt: string
  /** What all of them begin with; lines with this beginning from either side are dropped, so none can be forged. */
  readonly prefix: string
  /** Our keys in any text. The group is the part that may be shown. */
  readonly keyPattern: RegExp
}

/** The source of a pattern that finds our keys; its group is the part that may be shown. */
export function ownKeyPattern(servicePrefix: string): string {
  return `(${servicePrefix}_(?:live|admin)_)[0-9A-Za-z]+`
}

export function headerNames(servicePrefix: string): HeaderNames {
  const prefix = `x-${servicePrefix}-`
  return {
    requestId: `${prefix}request-id`,
    upstreamMs: `${prefix}upstream-ms`,
    costUsd: `${prefix}cost-usd`,
    listCostUsd: `${prefix}list-cost-usd`,
    balanceUsd: `${prefix}balance-usd`,
    budgetSpentUsd: `${prefix}budget-spent-usd`,
    budgetHeldUsd: `${prefix}budget-held-usd`,
    budgetCapUsd: `${prefix}budget-cap-usd`,
    budgetResetsAt: `${prefix}budget-resets-at`,
    prefix,
    keyPattern: new RegExp(ownKeyPattern(servicePrefix), 'g'),
  }
}
