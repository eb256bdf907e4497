import { createUlidSource } from '../../src/kernel/ids.ts'
import { dayOf, monthOf } from '../../src/ledger/calendar.ts'
import type { BillingBench } from '../billing/bench-of-one.ts'
import { changeDatabase, readDatabase } from '../support/read-database.ts'

/** Each kind of call is made once and copied with other times: usage, prices and bills are real. */

interface Kind {
  readonly model: string
  readonly input: number
  readonly cached?: number
  readonly output: number
  readonly isStream?: boolean
  /** Calls on a working day by now; a year ago there were a fifth of them. */
  readonly perDay: number
  readonly simulate?: string
}

interface Service {
  readonly name: string
  readonly fields?: Readonly<Record<string, unknown>>
  readonly agent: string
  readonly address: string
  readonly kinds: readonly Kind[]
}

const SERVICES: readonly Service[] = [
  {
    name: 'support-agent',
    agent: 'anthropic-sdk-python/1.8.0',
    address: '10.0.4.17',
    kinds: [
      { model: 'claude-sonnet-5-5', input: 9_412, cached: 58_200, output: 1_245, isStream: true, perDay: 42 },
      { model: 'claude-haiku-5-5', input: 4_204, output: 196, perDay: 14 },
    ],
  },
  {
    name: 'checkout',
    fields: { allowed_models: ['gpt-6-luna', 'gpt-6.1-terra'] },
    agent: 'OpenAI/JS 7.53.0',
    address: '10.0.7.3',
    kinds: [
      { model: 'gpt-6.1-terra', input: 16_820, output: 910, perDay: 26 },
      { model: 'gpt-6-luna', input: 2_048, output: 128, perDay: 14 },
    ],
  },
  {
    name: 'code-review-ci',
    agent: 'claude-cli/3.2.0 (external, cli)',
    address: '10.0.9.41',
    kinds: [
      { model: 'claude-opus-5-5', input: 31_870, cached: 124_500, output: 4_310, isStream: true, perDay: 11 },
      {
        model: 'claude-opus-5-5',
        input: 12_400,
        output: 1_180,
        isStream: true,
        perDay: 2,
        simulate: 'no-usage',
      },
    ],
  },
  {
    name: 'mobile-app',
    agent: 'OpenAI/Python 7.53.0',
    address: '203.0.113.80',
    kinds: [{ model: 'gpt-6.1-sol', input: 14_096, output: 1_640, isStream: true, perDay: 22 }],
  },
  {
    name: 'nightly-report',
    agent: 'python-requests/2.34',
    address: '10.0.2.8',
    kinds: [{ model: 'gpt-6-astra', input: 61_300, output: 4_050, perDay: 2 }],
  },
  {
    name: 'marketing-copy',
    agent: 'anthropic-sdk-typescript/1.8.0',
    address: '10.0.5.22',
    kinds: [{ model: 'claude-sonnet-5-5', input: 7_900, output: 2_420, perDay: 6 }],
  },
  {
    name: 'search-index',
    agent: 'OpenAI/Python 7.53.0',
    address: '10.0.2.31',
    kinds: [{ model: 'gpt-5.4', input: 1_900, output: 240, perDay: 9 }],
  },
  {
    name: 'intern-sandbox',
    fields: { log_requests: true },
    agent: 'curl/8.17.0',
    address: '10.0.3.9',
    kinds: [{ model: 'claude-haiku-5-5', input: 640, output: 220, perDay: 3 }],
  },
]

const TEAMS = [
  'billing',
  'catalog',
  'fraud',
  'growth',
  'legal',
  'loyalty',
  'ops',
  'payments',
  'returns',
  'search',
]
const STAGES = ['prod', 'staging', 'dev', 'ci', 'batch']

export interface Year {
  readonly keys: ReadonlyMap<string, { readonly id: string; readonly key: string }>
  /** A streamed call with a cached prompt, of today or yesterday. */
  readonly callId: string
}

const DAY_MS = 86_400_000
const DAYS = 365
const CREDIT_USD = 2500

export async function seedYear(bench: BillingBench): Promise<Year> {
  const { gateway } = bench
  const keys = new Map<string, { id: string; key: string }>()
  const made: Made[] = []
  for (const { name, fields, agent, address, kinds } of SERVICES) {
    const key = await gateway.createKey(name, fields)
    keys.set(name, key)
    for (const kind of kinds)
      made.push({ id: await callOnce(bench, kind, key.key, agent), key: key.id, kind, address })
  }
  const services = [...made]
  for (const [i, team] of TEAMS.entries())
    for (const [j, stage] of STAGES.entries()) {
      const { id: key } = await gateway.createKey(`${team}-${stage}`, {
        metadata: { team },
        ...(j % 2 === 0 ? { monthly_budget_usd: 25 * (1 + ((i + j) % 4)) } : {}),
        ...(j === 3 ? { daily_budget_usd: 2 + i } : {}),
      })
      const like = services[(i * 5 + j) % services.length]
      const perDay = [0.9, 0.4, 0.2, 0.5, 0][j] ?? 0
      if (like !== undefined && perDay > 0)
        made.push({ ...like, key, kind: { ...like.kind, perDay }, address: `10.1.${i}.${j}` })
    }
  // A lookup answers when its call has settled, so all calls have settled afterwards.
  for (const { id } of services) await bench.record(id)
  const copies = copiesOf(made, Date.now())
  const columns = (await readDatabase(gateway, `SELECT * FROM call WHERE id = '${made[0]?.id}'`))[0] ?? {}
  const changed: Record<string, string> = {
    id: 'v.new_id',
    key_id: 'v.key',
    started_at_ms: 'v.ms',
    ended_at_ms: 'v.ms + v.upstream + 1',
    month: 'v.month',
    day: 'v.day',
    upstream_ms: 'v.upstream',
    overhead_ms: '1',
    client_ip: 'v.address',
    balance_nanos: `${CREDIT_USD}000000000 - sum(call.cost_nanos) OVER (ORDER BY v.new_id)`,
  }
  const names = Object.keys(columns)
  const firstMs = Date.now() - DAYS * DAY_MS
  await changeDatabase(
    gateway,
    `
     WITH v (new_id, of, key, ms, day, month, upstream, address) AS (VALUES ${copies.rows.join(',')})
     INSERT INTO call (${names.join(', ')})
     SELECT ${names.map((name) => changed[name] ?? `call.${name}`).join(', ')} FROM v JOIN call ON call.id = v.of;
     DELETE FROM call WHERE id IN (${services.map(({ id }) => `'${id}'`).join(', ')});
     DELETE FROM rollup;
     INSERT INTO rollup (account_id, day, model, key_id, requests, input_tokens, output_tokens, cache_read_tokens,
       cache_write_tokens, cost_nanos, list_nanos, unpriced_requests, estimated_requests)
     SELECT account_id, day, coalesce(model_served, model_asked, ''), key_id, count(*), sum(input_tokens),
       sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(cost_nanos), sum(list_nanos),
       0, sum(CASE WHEN ${gateway.databaseUrl === null ? 'estimated = 1' : 'estimated'} THEN 1 ELSE 0 END)
     FROM call GROUP BY 1, 2, 3, 4;
     UPDATE budget SET month = '${monthOf(Date.now())}', day = '${dayOf(Date.now())}';
     UPDATE budget SET spent_nanos = (SELECT coalesce(sum(cost_nanos), 0) FROM call JOIN api_key ON api_key.id = key_id
         WHERE budget_id = budget.id AND call.month = budget.month),
       day_spent_nanos = (SELECT coalesce(sum(cost_nanos), 0) FROM call JOIN api_key ON api_key.id = key_id
         WHERE budget_id = budget.id AND call.day = budget.day);
     UPDATE account SET charged_nanos = (SELECT sum(cost_nanos) FROM call), month = '${monthOf(Date.now())}',
       spent_nanos = (SELECT coalesce(sum(cost_nanos), 0) FROM call WHERE month = '${monthOf(Date.now())}');
     UPDATE api_key SET created_at_ms = ${firstMs},
       last_used_at_ms = (SELECT max(started_at_ms) FROM call WHERE key_id = api_key.id)`,
  )
  await setLimits(bench, keys)
  return { keys, callId: copies.lastStream }
}

async function callOnce(bench: BillingBench, kind: Kind, key: string, agent: string): Promise<string> {
  const { model, input, cached = 0, output, isStream = false, simulate } = kind
  const isChat = model.startsWith('gpt')
  const usage = isChat
    ? { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
    : { input_tokens: input, cache_read_input_tokens: cached, output_tokens: output }
  // The prompt has as many bytes as tokens, so that the hold covers the call.
  const messages = [{ role: 'user', content: 'x'.repeat(input + cached) }]
  const limit = isChat ? { max_completion_tokens: 8_192 } : { max_tokens: 8_192 }
  const { requestId } = await bench.call(
    isChat ? '/v1/chat/completions' : '/v1/messages',
    { model, messages, ...limit, ...(isStream ? { stream: true } : {}) },
    {
      key,
      surface: isChat ? 'chat' : 'messages',
      simulate: simulate ?? `usage=${JSON.stringify(usage)}`,
      lines: [`User-Agent: ${agent}`],
    },
  )
  return requestId
}

interface Made {
  readonly id: string
  readonly key: string
  readonly kind: Kind
  readonly address: string
}

/** Fewer on weekends, more during the year, two months with a campaign. Always the same times. */
function copiesOf(made: readonly Made[], nowMs: number) {
  const random = createRandom(7)
  const calls: { ms: number; of: Made }[] = []
  for (let ago = DAYS - 1; ago >= 0; ago--) {
    const dayMs = Date.parse(dayOf(nowMs - ago * DAY_MS))
    const weekday = new Date(dayMs).getUTCDay()
    const isWeekend = weekday === 0 || weekday === 6
    const campaign = ago > 70 && ago < 95 ? 1.7 : 1
    for (const of of made) {
      const share = (1 - 0.8 * (ago / DAYS)) * (isWeekend ? 0.35 : 1) * campaign * (0.75 + random() * 0.5)
      for (let n = Math.round(of.kind.perDay * share - 0.5 + random()); n > 0; n--)
        calls.push({ ms: dayMs + Math.floor(random() * DAY_MS), of })
    }
  }
  // A few recent calls, of one kind after the other.
  for (const [i, of] of made.slice(0, 12).entries()) calls.push({ ms: nowMs - 7_000 - i * 41_000, of })
  const past = calls.filter(({ ms }) => ms < nowMs - 5_000).sort((a, b) => a.ms - b.ms)
  let atMs = 0
  const nextUlid = createUlidSource({ nowMs: () => atMs, monotonicMs: () => 0 })
  let lastStream = ''
  const rows = past.map(({ ms, of: { id, key, kind, address } }) => {
    atMs = ms
    const newId = `req_${nextUlid()}`
    const upstreamMs = Math.round(180 + kind.output * (1.4 + random() * 1.6))
    if (kind.cached !== undefined && kind.isStream) lastStream = newId
    return `('${newId}', '${id}', '${key}', ${ms}, '${dayOf(ms)}', '${monthOf(ms)}', ${upstreamMs}, '${address}')`
  })
  return { rows, lastStream }
}

function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}

async function setLimits({ gateway, credit, call }: BillingBench, keys: Year['keys']): Promise<void> {
  await credit(CREDIT_USD)
  for (const [name, share] of [
    ['support-agent', 0.62],
    ['checkout', 0.34],
    ['code-review-ci', 0.87],
    ['marketing-copy', 1.01],
    ['mobile-app', 0.45],
  ] as const) {
    const path = `/v1/keys/${keys.get(name)?.id}`
    const { month_spend_usd: spent } = await gateway.manage('GET', path)
    const cap = Math.max(1, share > 1 ? Math.floor(Number(spent) / share) : Math.ceil(Number(spent) / share))
    await gateway.manage('PATCH', path, { monthly_budget_usd: cap })
  }
  const end = new Date(Date.now() + 5 * DAY_MS).toISOString()
  await gateway.manage('PATCH', `/v1/keys/${keys.get('intern-sandbox')?.id}`, {
    expires_at: end,
    monthly_budget_usd: 20,
  })
  const { id } = await gateway.createKey('prototype')
  await gateway.revokeKey(id)
  const body = { model: 'claude-opus-5-5', max_tokens: 64, messages: [{ role: 'user', content: 'Hello' }] }
  for (let n = 0; n < 3; n++) await call('/v1/messages', body, { key: keys.get('checkout')?.key ?? '' })
}
