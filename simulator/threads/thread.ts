import type { JsonObject } from '../json.ts'

export interface Assistant {
  readonly id: string
  readonly createdAt: number
  /** The members that the request stated, with upstream's defaults for the members that it left out. */
  readonly echo: JsonObject
}

export interface Thread {
  readonly id: string
  readonly createdAt: number
  readonly metadata: unknown
  readonly messages: Message[]
  /** Bytes that were sent to be kept in the thread. */
  bytes: number
}

export interface Message {
  readonly id: string
  readonly createdAt: number
  readonly role: string
  readonly text: string
  /** The run that wrote the message; null where no run wrote it. */
  readonly run: { readonly id: string; readonly assistantId: unknown } | null
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
    assistant_id: run?.assistantId ?? null,
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
