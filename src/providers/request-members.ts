import { type JsonObject, UNREAD } from '../metering/json-shape.ts'
import { MODEL_NAME_CHARS_MAX, type RequestFacts } from '../metering/request-facts.ts'

/** The members of a request that decide what it may do and what it can cost. Nothing else of a body is looked at. */
export const REQUEST_MEMBERS = [
  'model',
  'stream',
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'n',
  'best_of',
  'service_tier',
  'speed',
  'inference_geo',
  'stream_options',
  'background',
  'previous_response_id',
  'conversation',
  'prompt',
  'fallbacks',
  'tools',
  'moderation',
  'svg',
  'output_format',
  'input_file_id',
  'store',
  'thinking',
  'reasoning',
  'reasoning_effort',
  'modalities',
  'size',
  'quality',
  'thread',
  'context_management',
  'compaction',
  'mcp_servers',
  'multi_agent',
  'max_tool_calls',
  'web_search_options',
  'partial_images',
  'chunking_strategy',
] as const

/** Names that are read inside of these members. One that is given twice there makes the body ambiguous. */
export const INNER_NAMES: ReadonlySet<string> = new Set([
  ...[
    'id',
    'type',
    'model',
    'tools',
    'max_uses',
    'max_tokens',
    'speed',
    'svg',
    'output_format',
    'size',
    'quality',
  ],
  ...['execution', 'environment', 'include_usage', 'edits', 'previous_message_id', 'search_context_size'],
])

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether a member is there. Null is how many clients leave a member out. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** The model that a request asks for; null where it names none, or none that can be read. */
export function modelAsked({ body: { model } }: RequestFacts): string | null {
  return typeof model === 'string' && model.length <= MODEL_NAME_CHARS_MAX ? model : null
}

/** Stands for a number that limits nothing, or that cannot be read: an upstream that reads it may read any number. */
export const LIMITLESS = Number.MAX_SAFE_INTEGER

/** A value of JSON as a whole number from 0 on, such as 1e3 and 8.0. A text, -1 and 1.5 are left to upstream: limitless. */
export function count(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : LIMITLESS
}

/** A text; any other value that is given is taken for an unknown word. */
export function wordOf(value: unknown): string | null {
  if (!isGiven(value)) return null
  return typeof value === 'string' ? value : ''
}

/** The elements of a list; null where there is something else that cannot be read as one. */
export function listOf(value: unknown): readonly unknown[] | null {
  if (!isGiven(value)) return []
  return Array.isArray(value) ? value : null
}

export function isUnread(value: unknown): boolean {
  return value === UNREAD
}
