import { z } from 'zod'
import { VERSION } from '../kernel/version.ts'
import type { AuditRun } from '../ledger/audit-runs.ts'
import type { NodeRecord, StoreFacts } from '../ledger/store-facts.ts'
import { auditObject, auditSchema } from './audits.ts'
import { formatInstant, instant, type Members, objectOf, schemaOf } from './fields.ts'
import { defineRoute, refused, replyJson, replyWhole, type ServingNode, UNSTORED } from './route.ts'

interface ShownHealth {
  readonly node: ServingNode
  readonly nowMs: number
  readonly ready: boolean
  readonly writable: boolean
  readonly facts: StoreFacts
  readonly deferred: number
  readonly audit: AuditRun | null
}

const nodeMembers: Members<NodeRecord> = {
  id: [z.string(), 'id'],
  name: [z.string(), 'name'],
  started_at: [instant(), ({ startedAtMs }) => formatInstant(startedAtMs)],
  seen_at: [instant(), ({ seenAtMs }) => formatInstant(seenAtMs)],
  state: [
    z.enum(['serving', 'gone']).describe('`gone`: it was given up, and admits nothing any more.'),
    ({ fenced }) => (fenced ? 'gone' : 'serving'),
  ],
}

const storeMembers: Members<ShownHealth> = {
  kind: [z.enum(['sqlite', 'postgres']), ({ facts }) => facts.kind],
  place: [z.string().describe('Without a password.'), ({ node }) => node.booksPlace],
  size_bytes: [z.int().min(0), ({ facts }) => facts.sizeBytes],
  writable: [z.boolean(), 'writable'],
  settlements_waiting: [
    z.int().min(0).describe('Of this node: calls that have ended and that the store has not taken yet.'),
    ({ node }) => node.settlementsWaiting(),
  ],
}

const healthMembers: Members<ShownHealth> = {
  object: [z.literal('health'), () => 'health'],
  status: [
    z.enum(['ok', 'unavailable']).describe('As `GET /readyz` says.'),
    ({ ready }) => (ready ? 'ok' : 'unavailable'),
  ],
  version: [z.string(), () => VERSION],
  node_version: [z.string().describe('Of Node.js.'), () => process.versions.node],
  node: [z.string().describe('How the other nodes call the one that answers.'), ({ node }) => node.name],
  started_at: [instant(), ({ node }) => formatInstant(node.startedAtMs)],
  uptime_seconds: [
    z.int().min(0),
    ({ node, nowMs }) => Math.max(0, Math.round((nowMs - node.startedAtMs) / 1_000)),
  ],
  memory_bytes: [
    z.int().min(0).describe('What the process has of the memory of the machine.'),
    () => process.memoryUsage.rss(),
  ],
  calls_in_flight: [z.int().min(0), ({ node }) => node.callsInFlight()],
  calls_waiting: [z.int().min(0), ({ node }) => node.callsWaiting()],
  deferred_objects: [
    z
      .int()
      .min(0)
      .describe('Batches, background responses and videos whose cost is not known yet, of all nodes.'),
    'deferred',
  ],
  nodes: [
    z.array(schemaOf(nodeMembers)).nullable().describe('Those that share the database; null with SQLite.'),
    ({ facts }) => facts.nodes?.map((node) => objectOf(nodeMembers, node)) ?? null,
  ],
  store: [schemaOf(storeMembers), (health) => objectOf(storeMembers, health)],
  configuration: [
    z
      .array(
        z.object({
          name: z.string(),
          value: z.union([z.string(), z.number(), z.boolean(), z.array(z.string())]).nullable(),
        }),
      )
      .describe('What is configured, secrets left out.'),
    ({ node }) => node.configuration,
  ],
  audit: [auditSchema, ({ audit }) => auditObject(audit)],
}

export const healthRoute = defineRoute({
  endpoint: 'GET /gateway/v1/health',
  operationId: 'get_health',
  summary: 'Show the node that answers, the others, the store and the configuration',
  success: {
    status: 200,
    schema: schemaOf(healthMembers).meta({ id: 'health', description: 'How the installation is.' }),
  },
  errors: ['not_found'],
  async handle(_, { node, store, clock }) {
    if (node === null)
      return refused('not_found', 'There is no gateway here; `tollgate doctor` looks at the rest.')
    const [ready, writable, facts, deferred, audit] = await Promise.all([
      node.isReady(),
      node.canWrite(),
      store.readStoreFacts(),
      store.countDeferred(),
      store.readAudit(),
    ])
    return replyJson(
      200,
      objectOf(healthMembers, { node, nowMs: clock.nowMs(), ready, writable, facts, deferred, audit }),
    )
  },
})

/** The path of the metrics, which with `metrics.public` needs no key. */
export const METRICS_PATH = '/metrics'

export const metricsRoute = defineRoute({
  endpoint: `GET ${METRICS_PATH}`,
  operationId: 'get_metrics',
  summary: 'Metrics of this node',
  description:
    'In the OpenMetrics text format, whatever `Accept` says. With `metrics.public` in the configuration it needs no key.',
  success: {
    status: 200,
    schema: null,
    alsoAs: { 'application/openmetrics-text': 'Every metric with its type, its help and its samples.' },
  },
  async handle(_request, management) {
    const { contentType, text } = await management.scrapeMetrics()
    return replyWhole(200, contentType, text, UNSTORED)
  },
})
