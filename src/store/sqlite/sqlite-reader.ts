import { limits } from '../../kernel/limits.ts'
import type { READS } from '../operations/cold-operations.ts'
import type { Answers } from '../operations/operation.ts'
import { createLazyThread, type LazyThread } from './lazy-thread.ts'

export type SqliteReader = LazyThread<Answers<typeof READS>>

/** The thread that answers what looks at many rows. */
export function createSqliteReader(file: string, waitingMax: number = limits.readQueueMax): SqliteReader {
  return createLazyThread<Answers<typeof READS>>('reader-worker', { file }, waitingMax)
}
