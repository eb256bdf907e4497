import { createRedact } from './secret.ts'

/** The headers that the gateway adds, and the redaction of their values. */
export type HeaderNames = Readonly<ReturnType<typeof headerNames>>

/** `secrets`: values that `redact` cannot recognise by their form. A call also redacts the credentials that it used. */
export function headerNames(servicePrefix: string, secrets: readonly string[] = [], showBalance = true) {
  const prefix = `x-${servicePrefix}-`
  return {
    requestId: `${prefix}request-id`,
    upstreamMs: `${prefix}upstream-ms`,
    costUsd: `${prefix}cost-usd`,
    listCostUsd: `${prefix}list-cost-usd`,
    /** Null: the balance is not shown. */
    balanceUsd: showBalance ? `${prefix}balance-usd` : null,
    budgetSpentUsd: `${prefix}budget-spent-usd`,
    budgetHeldUsd: `${prefix}budget-held-usd`,
    budgetCapUsd: `${prefix}budget-cap-usd`,
    budgetResetsAt: `${prefix}budget-resets-at`,
    /** Headers with this prefix are dropped from requests and upstream's replies, so that nobody can forge them. */
    prefix,
    redact: createRedact(servicePrefix, secrets),
  }
}
