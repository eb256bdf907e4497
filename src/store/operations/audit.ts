import { formatUsd, type Nanos } from '../../kernel/money.ts'
import { CREDIT_BACK, type RateAgain, RERATE } from '../../ledger/rerate.ts'
import { bool, nanos, nanosOrNull, number, present, type Row, sum, text, textOrNull } from '../rows.ts'
import type { RunQuery } from './operation.ts'
import { raw, type Sql, sql } from './sql.ts'

/** A stored figure that differs from the figure derived from the records. Both are text for display. */
export interface Difference {
  readonly what: string
  readonly where: string
  readonly stored: string
  readonly derived: string
}

export type AuditReport = Awaited<ReturnType<typeof audit>>

/** Checks calls and credits before their sums, so the first difference is the cause. `query`: one snapshot. */
export async function audit(query: RunQuery, rateAgain: RateAgain) {
  const calls = await count(query, 'call')
  const credits = await count(query, 'credit')
  const difference =
    (await checkRules(query, HOLD_RULES)) ??
    (await checkRules(query, CALL_RULES)) ??
    (await checkPrices(query, rateAgain)) ??
    (await checkRules(query, CREDIT_RULES)) ??
    (await checkRules(query, CREDIT_CALL_RULES)) ??
    (await compareSums(query))
  return { calls, credits, removedMonths: await removedMonths(query), difference }
}

/** The months of which calls were removed. Their recorded sums are taken as given. */
async function removedMonths(query: RunQuery): Promise<readonly string[]> {
  const rows = await query(sql`SELECT DISTINCT substr(day, 1, 7) AS month FROM removed_total ORDER BY 1`)
  return rows.map((row) => text(row, 'month'))
}

async function count(query: RunQuery, table: string): Promise<number> {
  const [row] = await query(sql`SELECT count(*) AS count FROM ${raw(table)}`)
  return number(present(row), 'count')
}

/** Rules for single rows: each rule in words, and the SQL condition of rows that break it. */
interface Rules {
  readonly label: string
  readonly from: string
  readonly id: string
  readonly rules: Readonly<Record<string, string>>
}

const CALL_RULES: Rules = {
  label: 'call',
  from: 'call',
  id: 'call.id',
  rules: {
    'its month is the month of its day': 'month <> substr(day, 1, 7)',
    'its key is of its account':
      'NOT EXISTS (SELECT 1 FROM api_key WHERE api_key.id = call.key_id AND api_key.account_id = call.account_id)',
    'no amount is negative': `hold_nanos < 0 OR hold_list_nanos < 0 OR lost_list_nanos < 0 OR input_tokens < 0
      OR output_tokens < 0 OR cache_read_tokens < 0 OR cache_write_tokens < 0`,
    'only a settled call costs something': "state <> 'settled' AND (cost_nanos > 0 OR list_nanos > 0)",
    'an interrupted call has lost its hold, and a settled one at most the rest of it': `CASE state
      WHEN 'interrupted' THEN lost_list_nanos <> hold_list_nanos
      WHEN 'settled' THEN lost_list_nanos NOT IN (0, hold_list_nanos - list_nanos) ELSE lost_list_nanos <> 0 END`,
    'overrun says whether it cost more than its hold': 'overrun <> (cost_nanos > hold_nanos)',
    'credited says whether it was credited back': `credited <> EXISTS (
      SELECT 1 FROM credit_call WHERE call_id = call.id AND once = '${CREDIT_BACK}')`,
  },
}

const HOLD_RULES: Rules = {
  label: 'hold',
  from: 'hold',
  id: 'hold.id',
  rules: {
    'its key is of its account and its budget': `NOT EXISTS (SELECT 1 FROM api_key k
      WHERE k.id = hold.key_id AND k.account_id = hold.account_id AND k.budget_id = hold.budget_id)`,
    'its call has not ended': `EXISTS (SELECT 1 FROM call WHERE call.id = hold.id) <> (state = 'interrupted')`,
    'it is polled if its cost comes later': "due_at_ms IS NULL AND state IN ('deferred', 'interrupted')",
  },
}

const CREDIT_RULES: Rules = {
  label: 'credit',
  from: 'credit',
  id: 'credit.id',
  rules: {
    'a top-up adds credit': "kind = 'top_up' AND amount_nanos <= 0",
    'an entry about calls is the sum of what it moved for them': `amount_nanos <> removed_nanos + (
      SELECT coalesce(sum(amount_nanos), 0) FROM credit_call WHERE credit_id = credit.id)
      AND (kind = '${CREDIT_BACK}' OR EXISTS (SELECT 1 FROM credit_call WHERE credit_id = credit.id))`,
  },
}

const CREDIT_CALL_RULES: Rules = {
  label: 'credited call',
  from: `credit_call LEFT JOIN call ON call.id = call_id LEFT JOIN credit ON credit.id = credit_id`,
  id: 'call_id',
  rules: {
    'it is a settled call of the account of its entry':
      "call.id IS NULL OR credit.id IS NULL OR state <> 'settled' OR call.account_id <> credit.account_id",
    'a credit-back returns all that was paid for the call': `once = '${CREDIT_BACK}' AND credit_call.amount_nanos <> cost_nanos - (
      SELECT coalesce(sum(amount_nanos), 0) FROM credit_call AS other
      WHERE other.call_id = credit_call.call_id AND other.once <> '${CREDIT_BACK}')`,
  },
}

async function checkRules(query: RunQuery, { label, from, id, rules }: Rules): Promise<Difference | null> {
  const conditions = Object.values(rules)
  const cases = conditions.map((condition, at) => `WHEN ${condition} THEN ${at}`)
  const broken = conditions.map((condition) => `(${condition})`)
  const statement = `SELECT ${id} AS id, CASE ${cases.join(' ')} END AS rule FROM ${from}
    WHERE ${broken.join(' OR ')} ORDER BY ${id} LIMIT 1`
  const [row] = await query(raw(statement))
  if (row === undefined) return null
  const what = Object.keys(rules)[number(row, 'rule')] ?? ''
  return { what, where: `${label} ${text(row, 'id')}`, stored: 'no', derived: 'yes' }
}

const BATCH_CALLS = 5_000

const RERATES = `FROM credit_call WHERE call_id = call.id AND once <> '${CREDIT_BACK}'`

/** After a rerate, the total paid for a call equals its cost at the new prices. */
async function checkPrices(query: RunQuery, rateAgain: RateAgain): Promise<Difference | null> {
  const priceVersionJson = priceVersions(query)
  for (let after = ''; ; ) {
    const rows = await query(sql`
      SELECT id, state, usage, rating, price_version, cost_nanos, list_nanos, estimated, hold_nanos, hold_list_nanos,
        CAST((SELECT coalesce(sum(amount_nanos), 0) ${raw(RERATES)}) AS bigint) AS rerated_nanos,
        (SELECT once ${raw(RERATES)} ORDER BY credit_id DESC LIMIT 1) AS rerate
      FROM call WHERE id > ${after} ORDER BY id LIMIT ${BATCH_CALLS}`)
    for (const row of rows) {
      if (row['state'] !== 'settled') continue
      const where = `call ${text(row, 'id')}`
      const rated = rateRow(row, await priceVersionJson(text(row, 'price_version')), rateAgain)
      if (typeof rated === 'string') return mismatch('price of a call', where, row['cost_nanos'], rated)
      // A call without usage costs nothing, or its hold if a client deleted the object that stated the usage.
      const isHold = row['usage'] === null && bool(row, 'estimated')
      const unrated = (column: string) => (isHold ? nanosOrNull(row, column) : 0n)
      const costNanos = rated?.costNanos ?? unrated('hold_nanos')
      const listNanos = rated?.listNanos ?? unrated('hold_list_nanos')
      if (row['cost_nanos'] !== costNanos)
        return mismatch('cost of a call', where, row['cost_nanos'], money(costNanos))
      if (row['list_nanos'] !== listNanos)
        return mismatch('list cost of a call', where, row['list_nanos'], money(listNanos))
      const rerate = textOrNull(row, 'rerate')
      if (rerate === null) continue
      const paidNanos = nanos(row, 'cost_nanos') - nanos(row, 'rerated_nanos')
      const again = rateRow(row, await priceVersionJson(rerate.slice(RERATE.length)), rateAgain)
      const derived = typeof again === 'string' ? again : money(again?.costNanos ?? null)
      if (money(paidNanos) !== derived) return mismatch('sum paid after a rerate', where, paidNanos, derived)
    }
    if (rows.length < BATCH_CALLS) return null
    after = text(present(rows.at(-1)), 'id')
  }
}

/** The cost of a call; null if the call has no usage or no price. A string says why the cost cannot be derived. */
function rateRow(row: Row, json: string | null, rateAgain: RateAgain): ReturnType<RateAgain> | string {
  if (json === null) return 'no such price version'
  if (row['usage'] === null) return null
  try {
    return rateAgain({ usage: text(row, 'usage'), rating: text(row, 'rating'), priceVersionJson: json })
  } catch (error) {
    return `cannot be derived: ${(error as Error).message}`
  }
}

function priceVersions(query: RunQuery): (id: string) => Promise<string | null> {
  const known = new Map<string, string | null>()
  return async (id) => {
    const cached = known.get(id)
    if (cached !== undefined) return cached
    const [row] = await query(sql`SELECT json FROM price_version WHERE id = ${id}`)
    const json = row === undefined ? null : text(row, 'json')
    known.set(id, json)
    return json
  }
}

/** A table of sums, with the statement that derives its rows from the records. A row of zeros equals a missing row. */
interface Sums {
  readonly table: string
  readonly key: readonly string[]
  readonly columns: readonly string[]
  readonly derived: Sql
}

const MODEL = "coalesce(model_served, model_asked, '')"
const CALL_SUMS = [
  ...['requests', 'input_tokens', 'output_tokens', 'cache_read_tokens', 'cache_write_tokens'],
  ...['cost_nanos', 'list_nanos'],
]
const ROLLUP_SUMS = [...CALL_SUMS, 'unpriced_requests', 'estimated_requests']

const SUMS: readonly Sums[] = [
  {
    table: 'budget',
    key: ['id'],
    columns: ['spent_nanos', 'held_nanos', 'lost_nanos', 'day_spent_nanos'],
    derived: raw(`SELECT b.id, sum(cost_nanos) AS spent_nanos, sum(hold_nanos) AS held_nanos,
        sum(lost_list_nanos) AS lost_nanos, coalesce(sum(cost_nanos) FILTER (WHERE c.day = b.day), 0) AS day_spent_nanos
      FROM (SELECT key_id, month, day, cost_nanos, 0 AS hold_nanos, lost_list_nanos FROM call
        UNION ALL SELECT key_id, month, day, 0, hold_nanos, 0 FROM hold
        UNION ALL SELECT key_id, substr(day, 1, 7), day, cost_nanos, 0, lost_list_nanos FROM removed_total) AS c
      JOIN api_key k ON k.id = c.key_id JOIN budget b ON b.id = k.budget_id AND b.month = c.month GROUP BY 1`),
  },
  {
    table: 'rollup',
    key: ['account_id', 'day', 'model', 'key_id'],
    columns: ROLLUP_SUMS,
    derived:
      raw(`SELECT account_id, day, model, key_id, ${ROLLUP_SUMS.map((column) => `sum(${column}) AS ${column}`).join(', ')}
      FROM (SELECT account_id, day, ${MODEL} AS model, key_id, ${CALL_SUMS.join(', ')},
          CASE WHEN unpriced THEN requests ELSE 0 END AS unpriced_requests,
          CASE WHEN estimated THEN requests ELSE 0 END AS estimated_requests
        FROM call WHERE state = 'settled' AND requests > 0
        UNION ALL SELECT account_id, day, model, key_id, ${ROLLUP_SUMS.join(', ')} FROM removed_total) AS c
      GROUP BY 1, 2, 3, 4`),
  },
  {
    table: 'rollup',
    key: ['account_id', 'day', 'model', 'key_id'],
    columns: ['credited_nanos'],
    derived: raw(`SELECT account_id, day, model, key_id, sum(amount_nanos) AS credited_nanos
      FROM (SELECT call.account_id, day, ${MODEL} AS model, key_id, amount_nanos
        FROM credit_call JOIN call ON call.id = call_id
        UNION ALL SELECT account_id, day, model, key_id, credited_nanos FROM removed_total) AS c
      GROUP BY 1, 2, 3, 4`),
  },
  {
    table: 'account',
    key: ['id'],
    columns: ['charged_nanos', 'held_nanos', 'short_nanos'],
    derived:
      raw(`SELECT account_id AS id, sum(cost_nanos) AS charged_nanos, sum(account_hold_nanos) AS held_nanos,
        sum(short_nanos) AS short_nanos
      FROM (SELECT account_id, cost_nanos, 0 AS account_hold_nanos, 0 AS short_nanos FROM call
        UNION ALL SELECT account_id, 0, account_hold_nanos, short_nanos FROM hold
        UNION ALL SELECT account_id, cost_nanos, 0, 0 FROM removed_total) AS c GROUP BY 1`),
  },
  {
    table: 'account',
    key: ['id'],
    columns: ['credited_nanos'],
    derived: raw('SELECT account_id AS id, sum(amount_nanos) AS credited_nanos FROM credit GROUP BY 1'),
  },
]

async function compareSums(query: RunQuery): Promise<Difference | null> {
  for (const sums of SUMS) {
    const difference = await compare(query, sums)
    if (difference !== null) return difference
  }
  return null
}

/** Not a FULL JOIN: SQLite has no index on the derived rows, and would read all of them for each stored one. */
async function compare(query: RunQuery, { table, key, columns, derived }: Sums): Promise<Difference | null> {
  const each = (textOf: (column: string) => string, separator = ', '): Sql =>
    raw(columns.map(textOf).join(separator))
  const names = raw(key.join(', '))
  const [row] = await query(sql`
    SELECT ${names}, ${each((column) => `CAST(sum(stored_${column}) AS text) AS stored_${column}`)},
      ${each((column) => `CAST(sum(derived_${column}) AS text) AS derived_${column}`)}
    FROM (
      SELECT ${names}, ${each((column) => `${column} AS stored_${column}, 0 AS derived_${column}`)} FROM ${raw(table)}
      UNION ALL SELECT ${names}, ${each((column) => `0, ${column}`)} FROM (${derived}) AS derived) AS sums
    GROUP BY ${names}
    HAVING ${each((column) => `sum(stored_${column}) <> sum(derived_${column})`, ' OR ')}
    ORDER BY ${names} LIMIT 1`)
  if (row === undefined) return null
  const column = columns.find((name) => row[`stored_${name}`] !== row[`derived_${name}`]) ?? ''
  const shown = (side: string): string => {
    const value = sum(row, `${side}_${column}`)
    return column.endsWith('_nanos') ? money(value) : String(value)
  }
  const where = key.map((name) => `${name} ${text(row, name)}`).join(', ')
  return { what: `${table}.${column}`, where, stored: shown('stored'), derived: shown('derived') }
}

function mismatch(what: string, where: string, stored: unknown, derived: string): Difference {
  return { what, where, stored: money(stored as Nanos | null), derived }
}

function money(nanos: Nanos | null): string {
  return nanos === null ? 'none' : `${formatUsd(nanos)} USD`
}
