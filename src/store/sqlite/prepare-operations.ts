import type { DatabaseSync } from 'node:sqlite'
import { adminKeyOperations } from './admin-keys.ts'
import { admitOperation } from './admit.ts'
import { batchFileOperation } from './batch-files.ts'
import { callOperations } from './calls.ts'
import { creditBackOperation } from './credit-back.ts'
import { keyOperations } from './keys.ts'
import { moneyOperations } from './money.ts'
import { prepareOnceBook } from './once.ts'
import type { Operations } from './operations.ts'
import { recogniseOperation } from './recognise.ts'
import { settingOperations } from './settings.ts'

/** All operations over one connection, their statements prepared once: preparing costs six times running them. */
export function prepareOperations(db: DatabaseSync): Operations {
  const onceBook = prepareOnceBook(db)
  const money = moneyOperations(db, onceBook)
  return {
    ...keyOperations(db, onceBook),
    ...adminKeyOperations(db),
    ...recogniseOperation(db),
    ...admitOperation(db),
    ...callOperations(db),
    ...batchFileOperation(db),
    ...money,
    ...creditBackOperation(db, onceBook, money.getBalance),
    ...settingOperations(db),
  }
}
