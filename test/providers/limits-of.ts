import assert from 'node:assert/strict'
import { findEndpoint } from '../../src/providers/find-endpoint.ts'
import { type RequestLimits, readLimits } from '../../src/providers/request-limits.ts'
import { type Body, factsOf } from './request-facts-of.ts'

export const MESSAGES = '/v1/messages'
export const RESPONSES = '/v1/responses'
export const CHAT = '/v1/chat/completions'
export const COMPLETIONS = '/v1/completions'
export const IMAGES = '/v1/images/generations'
export const EDITS = '/v1/images/edits'
export const TRANSCRIPTIONS = '/v1/audio/transcriptions'
/** A text longer than the part of a member that is kept. */
export const LONG = 'x'.repeat(300_000)

export async function limitsOf(path: string, body: Body): Promise<RequestLimits> {
  const endpoint = findEndpoint(path === MESSAGES ? 'messages' : 'chat', 'POST', path)
  assert.ok(endpoint)
  return readLimits(endpoint, await factsOf(endpoint, body))
}

export const tools = (...list: unknown[]) => ({ model: 'a', tools: list })
export const items = (...list: unknown[]) => ({ model: 'a', input: list })
export const content = (part: unknown) => ({ model: 'a', messages: [{ role: 'user', content: [part] }] })
