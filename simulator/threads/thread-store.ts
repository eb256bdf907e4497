import { BoundedMap } from '../bounded-map.ts'
import { storedThreadsBytesMax, storedThreadsMax } from '../limits.ts'
import type { Run } from './run-state.ts'
import type { Assistant, Thread } from './thread.ts'

/** Assistants, threads and runs; the oldest of each are forgotten when there are too many. */
export class ThreadStore {
  readonly assistants = new BoundedMap<Assistant>(storedThreadsMax, storedThreadsBytesMax)
  readonly threads = new BoundedMap<Thread>(storedThreadsMax, storedThreadsBytesMax)
  readonly runs = new BoundedMap<Run>(storedThreadsMax, storedThreadsBytesMax)

  keep(thread: Thread, bytes: number): void {
    thread.bytes += bytes
    this.threads.set(thread.id, thread, thread.bytes)
  }

  runsOf(threadId: string): Run[] {
    return this.runs.values().filter((run) => run.thread.id === threadId)
  }
}
