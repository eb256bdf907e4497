import type { DatabaseSync } from 'node:sqlite'
import type { Operations } from './operations.ts'
import { integer } from './rows.ts'

export function batchFileOperation(db: DatabaseSync): Pick<Operations, 'keepBatchFile'> {
  const upsert = db.prepare(
    `INSERT INTO batch_file (account_id, key_id, file_id, models, at_ms) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (account_id, file_id) DO UPDATE SET key_id = excluded.key_id, models = excluded.models,
       at_ms = excluded.at_ms`,
  )
  return {
    keepBatchFile({ accountId, keyId, fileId, models, atMs }) {
      upsert.run(accountId, keyId, fileId, JSON.stringify(models), integer(atMs))
    },
  }
}
