import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/**
 * Writes so many settled calls of a key straight into the database, two in each millisecond before `atMs`. The books
 * do not know of them; the log does.
 */
export function fillLog(dataDir: string, keyId: string, rows: number, atMs: number): void {
  const db = new DatabaseSync(join(dataDir, 'tollgate.db'), { timeout: 5_000 })
  db.prepare(
    `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :rows)
     INSERT INTO call (id, account_id, key_id, state, started_at_ms, ended_at_ms, month, day, method, path, surface,
       model_asked, model_served, status, stop_reason, streamed, usage, input_tokens, output_tokens,
       cache_read_tokens, cache_write_tokens, hold_nanos, hold_list_nanos, cost_nanos, list_nanos, balance_nanos,
       upstream_ms, overhead_ms, price_version, rating, upstream_request_id, client_ip, user_agent, bytes_in,
       bytes_out)
     SELECT printf('req_00%024d', i), 'default', :key, 'settled', :at - (:rows - i) / 2, :at - (:rows - i) / 2 + 900,
       '2026-11', '2026-11-15', 'POST', '/v1/messages', 'messages', 'claude-opus-4-8',
       iif(i % 1000 = 0, 'claude-rare-1', 'claude-opus-4-8'), iif(i % 100 = 0, 429, 200), 'end_turn', i % 2,
       '{"parts":[{"kind":"input","units":1200},{"kind":"output","units":345}]}', 1200, 345, 0, 17, 50000000,
       62500000, 12345678 + i, 15432097, -1 * i, 880, 3, '2026-11-01', '{"tier":"standard","geo":"global"}',
       printf('req_up_%024d', i), '203.0.113.7', 'anthropic-sdk-typescript/1.8.0 node/24', 4321, 8765
     FROM n`,
  ).run({ rows: BigInt(rows), key: keyId, at: BigInt(atMs) })
  db.close()
}
