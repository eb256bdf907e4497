import type { NodeRecord, StoreFacts } from '../../ledger/store-facts.ts'
import { number, numberOrNull, present, type Row, text } from '../rows.ts'
import type { Operation } from './operation.ts'
import { byStore, onPostgres, sql } from './sql.ts'

/** Nodes that are shown: the last that were heard of. */
const NODES_MAX = 100

export function* readStoreFacts(): Operation<StoreFacts> {
  const [row] = yield byStore({
    sqlite: `SELECT 'sqlite' AS kind, page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()`,
    postgres: `SELECT 'postgres' AS kind, pg_database_size(current_database()) AS bytes`,
  })
  const kind = text(present(row), 'kind') as StoreFacts['kind']
  const nodes = yield onPostgres(sql`SELECT id, name, started_at_ms, seen_at_ms, fenced_at_ms FROM node
    ORDER BY fenced_at_ms IS NOT NULL, seen_at_ms DESC, id LIMIT ${NODES_MAX}`)
  return {
    kind,
    sizeBytes: number(present(row), 'bytes'),
    nodes: kind === 'sqlite' ? null : nodes.map(nodeRecord),
  }
}

function nodeRecord(row: Row): NodeRecord {
  return {
    id: text(row, 'id'),
    name: text(row, 'name'),
    startedAtMs: number(row, 'started_at_ms'),
    seenAtMs: number(row, 'seen_at_ms'),
    fenced: numberOrNull(row, 'fenced_at_ms') !== null,
  }
}
