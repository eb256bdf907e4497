import type { DatabaseSync } from 'node:sqlite'
import { keyListOperation } from './key-list.ts'
import type { ReadOperations } from './read-operations.ts'
import { requestLogOperation } from './request-log.ts'
import { usageOperation } from './usage.ts'

export function prepareReadOperations(db: DatabaseSync): ReadOperations {
  return { ...keyListOperation(db), ...requestLogOperation(db), ...usageOperation(db) }
}
