import { createRedact, type Redact, SeenSecrets } from './secret.ts'

/** The headers that the gateway adds, and the redaction of their values. */
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
  /** The common prefix. Incoming headers with it are dropped on both sides, so that none can be forged. */
  readonly prefix: string
  readonly redact: Redact
}

/** `secrets`: those that `redact` cannot recognise by their form. `seen`: those that become known later. */
export function headerNames(
  servicePrefix: string,
  secrets: readonly string[] = [],
  showBalance = true,
  seen = new SeenSecrets(),
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
    redact: createRedact(servicePrefix, secrets, seen),
  }
}
