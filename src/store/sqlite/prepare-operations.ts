import type { DatabaseSync } from 'node:sqlite'
import { callOperations } from './calls.ts'
import { keyOperations } from './keys.ts'
import { moneyOperations } from './money.ts'
import type { Operations } from './operations.ts'
import { settingOperations } from './settings.ts'

/** All operations over one connection, their statements prepared once: preparing costs six times running them. */
export function prepareOperations(db: DatabaseSync): Operations {
  return { ...keyOperations(db), ...callOperations(db), ...moneyOperations(db), ...settingOperations(db) }
}
