import assert from 'node:assert/strict'
import { planRequest } from '../../src/calls/call-plan.ts'
import { findEndpoint } from '../../src/providers/find-endpoint.ts'
import { factsOf } from '../providers/request-facts-of.ts'
import { prices } from './worked-example.ts'

/** The hold of a request at the list prices, in nanodollars. Fails if the request is unbounded. */
export async function holdOf(path: string, body: Readonly<Record<string, unknown>>): Promise<bigint> {
  const surface = path === '/v1/messages' ? 'messages' : 'chat'
  const endpoint = findEndpoint(surface, 'POST', path)
  const facts = await factsOf(endpoint, body)
  const bodyBytes = Buffer.byteLength(JSON.stringify(body))
  const request = { surface, method: 'POST', path, endpoint, facts, bodyBytes, atMs: Date.now() } as const
  const { hold } = planRequest(request, prices())
  assert.ok(hold.kind === 'bound', hold.kind)
  return hold.nanos
}
