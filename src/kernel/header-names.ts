import { createRedact, type Redact } from './secret.ts'

/** How the service calls itself on the wire: the headers it adds, and what of it must not be shown there. */
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
  readonly redact: Redact
}

/** `secrets` are those that `redact` cannot know by their form. */
export function headerNames(servicePrefix: string, secrets: readonly string[] = []): HeaderNames {
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
    redact: createRedact(servicePrefix, secrets),
  }
}
