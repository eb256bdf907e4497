import type { DatabaseSync } from 'node:sqlite'
import { keyOperations } from './keys.ts'
import type { Operations } from './operations.ts'
import { settingOperations } from './settings.ts'

/** All operations over one connection, their statements prepared once: preparing costs six times running them. */
export function prepareOperations(db: DatabaseSync): Operations {
  return { ...keyOperations(db), ...settingOperations(db) }
}
