import { z } from 'zod'
import type { AuditReport } from '../ledger/audit.ts'
import type { AuditResult, AuditRun } from '../ledger/audit-runs.ts'
import { formatInstant, instant, type Members, objectOf, schemaOf } from './fields.ts'
import { defineRoute, type OwnReply, refused, replyJson } from './route.ts'

interface ShownAudit {
  readonly run: AuditRun | null
  readonly report: AuditReport | null
  readonly error: string | null
}

const count = () => z.int().min(0)

const auditMembers: Members<ShownAudit> = {
  object: [z.literal('audit'), () => 'audit'],
  id: [z.string().nullable(), ({ run }) => run?.id ?? null],
  state: [
    z.enum(['never', 'running', 'done', 'failed']).describe('`never`: none was begun here.'),
    ({ run }) => run?.state ?? 'never',
  ],
  node: [z.string().nullable().describe('The node that runs it.'), ({ run }) => run?.node ?? null],
  started_at: [instant().nullable(), ({ run }) => formatInstant(run?.startedAtMs ?? null)],
  ended_at: [instant().nullable(), ({ run }) => formatInstant(run?.endedAtMs ?? null)],
  done: [count().describe('Of `total`: every call is read twice.'), ({ run }) => run?.done ?? 0],
  total: [count().describe('0 until it is known.'), ({ run }) => run?.total ?? 0],
  balanced: [
    z.boolean().nullable().describe('Whether all is as the records say; null without a result.'),
    ({ report }) => (report === null ? null : report.difference === null),
  ],
  difference: [
    z
      .object({ what: z.string(), where: z.string(), stored: z.string(), derived: z.string() })
      .nullable()
      .describe('The first that was found.'),
    ({ report }) => report?.difference ?? null,
  ],
  counts: [
    z
      .object({ calls: count(), keys: count(), months: count(), days: count(), credits: count() })
      .nullable()
      .describe('How much there was to check.'),
    ({ report }) => report?.counts ?? null,
  ],
  months_away: [
    z.array(z.string()).describe('Months whose calls were put away: their sums were taken as they stand.'),
    ({ report }) => report?.monthsAway ?? [],
  ],
  error: [z.string().nullable().describe('Why there is no result.'), 'error'],
}

export const auditSchema = schemaOf(auditMembers).meta({
  id: 'audit',
  description: 'The last audit that was begun: every sum and price derived again from the records.',
})

export function auditObject(run: AuditRun | null): Record<string, unknown> {
  const result = run?.result == null ? null : (JSON.parse(run.result) as AuditResult)
  const error = result !== null && 'error' in result ? result.error : null
  const report = result !== null && !('error' in result) ? result : null
  return objectOf(auditMembers, { run, report, error })
}

const getAudit = defineRoute({
  endpoint: 'GET /gateway/v1/audit',
  operationId: 'get_audit',
  summary: 'Show the last audit: how far it is, or what came of it',
  success: { status: 200, schema: auditSchema },
  handle: async (_, { store }) => replyJson(200, auditObject(await store.readAudit())),
})

const startAudit = defineRoute({
  endpoint: 'POST /gateway/v1/audit',
  operationId: 'start_audit',
  summary: 'Audit the books in the background',
  description:
    'Derives every balance, key month, rollup, hold and price again, as they stand at one instant, and compares. It runs in ' +
    'a thread of its own on the node that was asked, one at a time in an installation, and writes nothing but its result.',
  success: { status: 202, schema: auditSchema },
  errors: ['conflict', 'not_found'],
  async handle(_, { node, store }): Promise<OwnReply> {
    if (node === null) return refused('not_found', 'There is no gateway here; `tollgate audit` runs one.')
    if (!(await node.startAudit())) return refused('conflict', 'An audit is running already.')
    return replyJson(202, auditObject(await store.readAudit()))
  },
})

export const auditRoutes = [getAudit, startAudit]
