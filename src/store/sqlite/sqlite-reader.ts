import { limits } from '../../kernel/limits.ts'
import { createLazyThread, type LazyThread } from './lazy-thread.ts'
import type { ReaderParts, ReadOperations } from './read-operations.ts'

export type SqliteReader = LazyThread<ReadOperations>

/** The thread that answers what looks at many rows. */
export function createSqliteReader(file: string, waitingMax: number = limits.readQueueMax): SqliteReader {
  const parts: ReaderParts = { file }
  return createLazyThread<ReadOperations>('reader-worker', parts, waitingMax)
}
