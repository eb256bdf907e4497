import { setImmediate } from 'node:timers/promises'
import { dayOf, monthOf } from '../../src/ledger/calendar.ts'
import { changeDatabase, type DatabaseOwner } from './read-database.ts'

/** SQLite writes in this thread: the event loop turns between batches, or idle connections would end. */
const PIECE_ROWS = 5_000

/** Settled calls, two per millisecond before `atMs`. Only the log has them; balances and sums do not. */
export async function fillLog(
  gateway: DatabaseOwner,
  keyId: string,
  rows: number,
  atMs: number,
): Promise<void> {
  const lastMs = atMs - 1
  for (let first = 0; first < rows; first += PIECE_ROWS) {
    const end = Math.min(first + PIECE_ROWS, rows)
    await changeDatabase(
      gateway,
      `
     WITH RECURSIVE n (i) AS (SELECT ${first} UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ${end}),
       at (i, ms) AS (SELECT i, ${atMs} - (${rows} - i + 1) / 2 FROM n)
     INSERT INTO call (id, account_id, key_id, state, started_at_ms, ended_at_ms, month, day, method, path,
       surface, model_asked, model_served, status, stop_reason, streamed, usage, input_tokens, output_tokens,
       cache_read_tokens, cache_write_tokens, hold_nanos, hold_list_nanos, cost_nanos, list_nanos, balance_nanos,
       upstream_ms, overhead_ms, price_version, rating, upstream_request_id, client_ip, user_agent, bytes_in,
       bytes_out)
     SELECT 'req_0000000000000000' || (1000000000 + i), 'default', '${keyId}', 'settled', ms, ms + 900,
       '${monthOf(lastMs)}', '${dayOf(lastMs)}', 'POST', '/v1/messages', 'messages', 'claude-opus-4-8',
       CASE WHEN i % 1000 = 0 THEN 'claude-rare-1' ELSE 'claude-opus-4-8' END,
       CASE WHEN i % 100 = 0 THEN 429 ELSE 200 END, 'end_turn', i % 2 = 1,
       '{"parts":[{"kind":"input","units":1200},{"kind":"output","units":345}]}', 1200, 345, 0, 17, 50000000,
       62500000, 12345678 + i, 15432097, -1 * i, 880, 3, '2026-11-01', '{"tier":"standard","geo":"global"}',
       'req_up_00000000000000' || (1000000000 + i), '203.0.113.7', 'anthropic-sdk-typescript/1.8.0 node/24', 4321,
       8765
     FROM at`,
    )
    await setImmediate()
  }
}
