import type { DatabaseSync } from 'node:sqlite'
import { keyListOperation } from './key-list.ts'
import type { ReadOperations } from './read-operations.ts'

export function prepareReadOperations(db: DatabaseSync): ReadOperations {
  return { ...keyListOperation(db) }
}
