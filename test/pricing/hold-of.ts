import assert from 'node:assert/strict'
import { createPricer } from '../../src/calls/pricer.ts'
import { NO_DISCOUNT } from '../../src/pricing/amounts.ts'
import { findEndpoint } from '../../src/providers/find-endpoint.ts'
import { modelAsked } from '../../src/providers/request-members.ts'
import { factsOf } from '../providers/request-facts-of.ts'
import { shippedBook } from './worked-example.ts'

const pricer = createPricer(shippedBook, {
  discount: NO_DISCOUNT,
  unpriced: 'auto',
  chatDefaultTier: null,
  chatRegional: false,
  polls: true,
})

/** The hold of a request at the list prices, in nanodollars. Fails if the request is unbounded. */
export async function holdOf(path: string, body: Readonly<Record<string, unknown>>): Promise<bigint> {
  const surface = path === '/v1/messages' ? 'messages' : 'chat'
  const endpoint = findEndpoint(surface, 'POST', path)
  const facts = await factsOf(endpoint, body)
  const { hold } = pricer.plan({
    ...{ surface, method: 'POST', path, endpoint, facts, modelAsked: modelAsked(facts) },
    bodyBytes: Buffer.byteLength(JSON.stringify(body)),
    atMs: Date.now(),
  })
  assert.ok(hold.kind === 'bound', hold.kind)
  return hold.nanos
}
