import type { Store } from '../store.ts'
import { toKeptJson } from './any-text.ts'
import type { Database } from './database.ts'

export function batchFileOperation(db: Database): Pick<Store, 'keepBatchFile'> {
  return {
    async keepBatchFile({ accountId, keyId, fileId, models, atMs }) {
      await db.query(
        `INSERT INTO batch_file (account_id, key_id, file_id, models, at_ms) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (account_id, file_id) DO UPDATE SET key_id = excluded.key_id, models = excluded.models,
           at_ms = excluded.at_ms`,
        [accountId, keyId, fileId, toKeptJson(models), Math.trunc(atMs)],
      )
    },
  }
}
