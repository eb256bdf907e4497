import { BoundedMap } from '../bounded-map.ts'
import type { JsonObject } from '../json.ts'
import { storedThreadsBytesMax, storedThreadsMax } from '../limits.ts'
import type { Run } from './run-state.ts'

export interface Assistant {
  readonly id: string
  readonly createdAt: number
  /** What the request said, with what upstream takes for what it left out. */
  readonly echo: JsonObject
}

export interface Thread {
  readonly id: string
  readonly createdAt: number
  readonly metadata: unknown
  readonly messages: Message[]
  /** Of what was sent to be kept in it. */
  bytes: number
}

export interface Message {
  readonly id: string
  readonly createdAt: number
  readonly role: string
  readonly text: string
  readonly run: Run | null
}

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

export function assistantJson({ id, createdAt, echo }: Assistant): JsonObject {
  return { id, object: 'assistant', created_at: createdAt, ...echo }
}

export function threadJson({ id, createdAt, metadata }: Thread): JsonObject {
  return { id, object: 'thread', created_at: createdAt, metadata, tool_resources: {} }
}

export function messageJson(
  thread: Thread,
  { id, createdAt, role, text, run }: Message,
  status: 'in_progress' | 'completed' | 'incomplete' = 'completed',
): JsonObject {
  const isWritten = status !== 'in_progress'
  return {
    id,
    object: 'thread.message',
    created_at: createdAt,
    assistant_id: run === null ? null : run.echo['assistant_id'],
    thread_id: thread.id,
    run_id: run?.id ?? null,
    role,
    status,
    completed_at: status === 'completed' ? createdAt : null,
    incomplete_at: status === 'incomplete' ? createdAt : null,
    incomplete_details: status === 'incomplete' ? { reason: 'max_tokens' } : null,
    content: isWritten ? [{ type: 'text', text: { value: text, annotations: [] } }] : [],
    attachments: [],
    metadata: {},
  }
}
