import { createRedact, type Redact } from './secret.ts'

/** The service's names on the wire: the headers it adds, and the redaction of texts that must not be shown there. */
export interface HeaderNames {
  readonly requestId: string
  readonly upstreamMs: string
  readonly costUsd: string
  readonly listCostUsd: string
  /** Null: the balance is not shown. */
  readonly balanceUsd: string | null
  readonly budgetSpentUsd: string
  readonly budgetHeldUsd: string
  readonly budgetCapUsd: string
  readonly budgetResetsAt: string
  /** The beginning of all these names; lines with it from either side are dropped, so that no header can be forged. */
  readonly prefix: string
  readonly redact: Redact
}

/** `secrets` are the secrets that `redact` cannot know by their form. */
export function headerNames(
  servicePrefix: string,
  secrets: readonly string[] = [],
  showBalance = true,
): HeaderNames {
  const prefix = `x-${servicePrefix}-`
  return {
    requestId: `${prefix}request-id`,
    upstreamMs: `${prefix}upstream-ms`,
    costUsd: `${prefix}cost-usd`,
    listCostUsd: `${prefix}list-cost-usd`,
    balanceUsd: showBalance ? `${prefix}balance-usd` : null,
    budgetSpentUsd: `${prefix}budget-spent-usd`,
    budgetHeldUsd: `${prefix}budget-held-usd`,
    budgetCapUsd: `${prefix}budget-cap-usd`,
    budgetResetsAt: `${prefix}budget-resets-at`,
    prefix,
    redact: createRedact(servicePrefix, secrets),
  }
}
