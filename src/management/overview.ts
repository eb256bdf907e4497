import { fieldsOf } from '../api/field-names.ts'
import type { Written } from '../api/fields.ts'
import { balanceObject } from '../api/objects.ts'
import { NAMED_KEYS_MAX, type OverviewObject } from '../api/overview.ts'
import { VERSION } from '../kernel/runtime.ts'
import { shareWork } from '../kernel/shared-work.ts'
import type { AttentionKey, AttentionKeys, Overview } from '../ledger/usage-report.ts'
import { defineRoute, type Management, NO_STORE, replyWhole, type ServingNode, usd } from './route.ts'

const percentOf = ({ capNanos, spentNanos }: AttentionKey) =>
  capNanos === null || capNanos === 0n ? 0 : Number((spentNanos * 100n) / capNanos)

const cappedKeys = ({ count, keys }: AttentionKeys) => ({
  count,
  data: keys.map((key) => ({
    ...fieldsOf(key, ['id', 'name', 'period', 'spentNanos', 'capNanos']),
    percent: percentOf(key),
  })),
})

function overviewObject(
  of: Overview,
  node: ServingNode,
  load: Pick<OverviewObject, 'calls_in_flight' | 'calls_waiting'>,
): Written<OverviewObject> {
  return {
    object: 'overview',
    month: of.month,
    ...fieldsOf(of, ['requests', 'costNanos', 'creditedNanos']),
    list_cost_usd: usd(of.listNanos),
    savings_usd: usd(of.listNanos - of.costNanos),
    balance: balanceObject(of.balance),
    version: VERSION,
    store: node.storeKind,
    simulator: node.simulator,
    ...load,
    alert_thresholds_percent: node.alertThresholds,
    attention: {
      keys_exhausted: cappedKeys(of.exhausted),
      keys_near_cap: cappedKeys(of.nearCap),
      keys_expiring: {
        count: of.expiring.count,
        data: of.expiring.keys.map((key) => fieldsOf(key, ['id', 'name', 'expiresAtMs'])),
      },
      unpriced_models: of.unpricedModels,
      refusals: of.refusals,
      webhooks_failed_deliveries: of.failedDeliveries,
      webhooks_disabled: of.disabledWebhooks,
    },
  }
}

const OVERVIEW_MS = 1_000
/** However slow the database is, a page is at most this old. */
const OVERVIEW_MS_MAX = 10_000
const reads = new WeakMap<Management, Map<string, () => Promise<Overview>>>()

/** Reads the overview. All pages share a read for a second, or for twenty times as long as it took, up to ten seconds. */
function readShared(accountId: string, management: Management): Promise<Overview> {
  const { store, clock } = management
  const known = reads.get(management) ?? new Map<string, () => Promise<Overview>>()
  reads.set(management, known)
  const read =
    known.get(accountId) ??
    shareWork(
      () => store.readOverview({ accountId, atMs: clock.nowMs(), listedMax: NAMED_KEYS_MAX }),
      clock,
      (tookMs) => Math.min(OVERVIEW_MS_MAX, Math.max(OVERVIEW_MS, tookMs * 20)),
    )
  known.set(accountId, read)
  return read()
}

export const getOverview = defineRoute({
  summary: 'Show the month, the credit and what needs attention',
  description: 'You can poll this every few seconds. The figures are cached for a second.',
  async handle({ accountId, role }, management) {
    const { node, refusedCalls, waitingCalls } = management
    await refusedCalls.written()
    const overview = await readShared(accountId, management)
    // Only operators see calls of other accounts.
    const load =
      role === 'operator'
        ? { calls_in_flight: node.callsInFlight(), calls_waiting: waitingCalls.count }
        : { calls_in_flight: overview.inFlight, calls_waiting: waitingCalls.countOfAccount(accountId) }
    return overviewObject(overview, node, load)
  },
})

export const getMetrics = defineRoute({
  summary: 'Metrics of this node',
  description:
    'In the OpenMetrics text format, whatever `Accept` says. With `metrics.public` it needs no key.',
  alsoAs: { 'application/openmetrics-text': 'Every metric with its type, its help and its samples.' },
  async handle(_request, management) {
    const { contentType, text } = await management.scrapeMetrics()
    return replyWhole(200, contentType, text, NO_STORE)
  },
})
