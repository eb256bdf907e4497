import { z } from 'zod'
import type { Clock } from '../kernel/clock.ts'
import { limits } from '../kernel/limits.ts'
import { rawInteger } from '../kernel/money.ts'
import type { AttentionKey, AttentionKeys, Overview } from '../ledger/usage-report.ts'
import { balanceMembers, balanceSchema } from './credits.ts'
import { formatInstant, instant, keyId, type Members, objectOf, schemaOf, usd, usdAmount } from './fields.ts'
import { defineRoute, type Management, replyTagged } from './route.ts'

interface ShownOverview extends Overview {
  readonly inFlight: number
  readonly waiting: number
}

const count = () => z.int().min(0)
const calls = (description: string) => z.bigint().meta({ type: 'integer', minimum: 0, description })

const cappedMembers: Members<AttentionKey> = {
  id: [keyId(), 'id'],
  name: [z.string(), 'name'],
  percent: [count().describe('Of the cap that is spent, in whole percent.'), percentOf],
  month_spend_usd: [usdAmount('What it has spent this month.'), (key) => usd(key.spentNanos)],
  monthly_budget_usd: [usdAmount('Its cap.').nullable(), (key) => usd(key.capNanos)],
}

function percentOf({ capNanos, spentNanos }: AttentionKey): number {
  return capNanos === null || capNanos === 0n ? 0 : Number((spentNanos * 100n) / capNanos)
}

const expiringMembers: Members<AttentionKey> = {
  id: [keyId(), 'id'],
  name: [z.string(), 'name'],
  expires_at: [instant().nullable(), (key) => formatInstant(key.expiresAtMs)],
}

/** All keys are counted, and some are named. */
function keysMembers(members: Members<AttentionKey>): Members<AttentionKeys> {
  return {
    count: [count(), 'count'],
    data: [
      z.array(schemaOf(members)).describe(`At most ${limits.overviewNamedMax}, the worst first.`),
      ({ keys }) => keys.map((key) => objectOf(members, key)),
    ],
  }
}

const capped = keysMembers(cappedMembers)
const expiring = keysMembers(expiringMembers)

const attentionMembers: Members<ShownOverview> = {
  keys_exhausted: [
    schemaOf(capped).describe('Usable keys that have spent their cap.'),
    ({ exhausted }) => objectOf(capped, exhausted),
  ],
  keys_near_cap: [
    schemaOf(capped).describe('Usable keys that have spent 80 % of their cap or more, and not all of it.'),
    ({ nearCap }) => objectOf(capped, nearCap),
  ],
  keys_expiring: [
    schemaOf(expiring).describe('Keys that expire within seven days.'),
    ({ expiring: keys }) => objectOf(expiring, keys),
  ],
  unpriced_models: [
    z
      .array(z.object({ model: z.string(), requests: calls('Calls of the last seven days.') }))
      .describe('Models of the last seven days that had no price, or not for all they did.'),
    ({ unpricedModels }) =>
      unpricedModels.map(({ model, requests }) => ({ model, requests: rawInteger(requests) })),
  ],
  refusals: [
    z
      .array(z.object({ code: z.string(), calls: calls('In the last 24 hours.') }))
      .describe('Why calls were refused in the last 24 hours, as far as refusals are kept.'),
    ({ refusals }) => refusals.map(({ code, calls }) => ({ code, calls: rawInteger(calls) })),
  ],
  webhooks_failed_deliveries: [
    count().describe('Deliveries of the last 24 hours that were given up.'),
    'failedDeliveries',
  ],
  webhooks_disabled: [
    count().describe('Endpoints that were disabled because they failed.'),
    'disabledWebhooks',
  ],
}

const overviewMembers: Members<ShownOverview> = {
  object: [z.literal('overview'), () => 'overview'],
  month: [z.string().describe('Such as `2026-11`, in UTC.'), 'month'],
  requests: [calls('Calls of the month that were settled.'), ({ requests }) => rawInteger(requests)],
  cost_usd: [usdAmount('What the calls of the month cost.'), ({ costNanos }) => usd(costNanos)],
  list_cost_usd: [usdAmount('What they would have cost at list price.'), ({ listNanos }) => usd(listNanos)],
  savings_usd: [usdAmount('The list cost less the cost.'), (of) => usd(of.listNanos - of.costNanos)],
  credited_usd: [usdAmount('What of it was given back.'), ({ creditedNanos }) => usd(creditedNanos)],
  balance: [balanceSchema, ({ balance }) => objectOf(balanceMembers, balance)],
  calls_in_flight: [count().describe('Calls that are upstream now, on the node that answers.'), 'inFlight'],
  calls_waiting: [count().describe('Calls that wait for room, on the node that answers.'), 'waiting'],
  attention: [
    schemaOf(attentionMembers).describe('What needs a look.'),
    (of) => objectOf(attentionMembers, of),
  ],
}

interface Read {
  readonly overview: Promise<Overview>
  goodUntilMs: number
}

/**
 * Pages ask for the overview every few seconds, many at once perhaps. The result of one read serves all pages for twenty times
 * as long as it took, so that all of them together take a twentieth of a thread at most.
 */
class SharedLooks {
  readonly #reads = new Map<string, Read>()

  read(accountId: string, { store, clock }: Pick<Management, 'store' | 'clock'>): Promise<Overview> {
    const beganMs = clock.monotonicMs()
    const known = this.#reads.get(accountId)
    if (known !== undefined && beganMs < known.goodUntilMs) return known.overview
    const { overviewNamedMax: namedMax } = limits
    const overview = store.readOverview({ accountId, atMs: clock.nowMs(), namedMax })
    const read: Read = { overview, goodUntilMs: Number.POSITIVE_INFINITY }
    this.#reads.set(accountId, read)
    overview.then(
      () => {
        read.goodUntilMs = goodUntil(beganMs, clock)
      },
      () => this.#reads.delete(accountId),
    )
    return overview
  }
}

const SHARE_OF_TIME = 20

function goodUntil(beganMs: number, clock: Clock): number {
  const nowMs = clock.monotonicMs()
  return nowMs + Math.max(limits.overviewFreshMs, (nowMs - beganMs) * SHARE_OF_TIME)
}

const looks = new WeakMap<Management, SharedLooks>()

export const overviewRoute = defineRoute({
  endpoint: 'GET /gateway/v1/overview',
  operationId: 'get_overview',
  summary: 'Show the month, the credit and what needs a look',
  description:
    'Cheap enough to be asked every few seconds: it is read at most once a second, and a client that sends the `etag` of ' +
    'its last answer as `If-None-Match` gets 304 while nothing has changed.',
  success: {
    status: 200,
    schema: schemaOf(overviewMembers).meta({
      id: 'overview',
      description: 'The account at a glance.',
    }),
  },
  async handle({ caller, exchange }, management) {
    const { node, refusedCalls } = management
    const shared = looks.get(management) ?? new SharedLooks()
    looks.set(management, shared)
    await refusedCalls.written()
    const overview = await shared.read(caller.accountId, management)
    const ofNode = { inFlight: node?.callsInFlight() ?? 0, waiting: node?.callsWaiting() ?? 0 }
    return replyTagged(exchange.headers, objectOf(overviewMembers, { ...overview, ...ofNode }))
  },
})
