import { findCaller } from '../calls/admit.ts'
import type { Upstream } from '../http/upstream-connection.ts'
import type { Denial, Refusal } from '../kernel/errors.ts'
import { listsStoredObjects } from '../providers/path-spelling.ts'
import type { Call } from './call.ts'
import type { Gateway } from './gateway.ts'
import { upstreamFor } from './own-upstreams.ts'
import { checkKeyBeforeBody } from './read.ts'
import { refuseEndpoint, refuseUnconfigured, SHARED_UPSTREAM } from './refusals.ts'

export type Checked =
  | { readonly kind: 'ready'; readonly upstream: Upstream }
  | ({ readonly kind: 'refused' } & Denial)

/**
 * Checks what admission cannot decide: is the path served, and is there an upstream? The key is looked up only if an
 * answer depends on it, and a refusal for the key goes before all others.
 */
export async function checkServed(call: Call, gateway: Gateway, full: Refusal | null): Promise<Checked> {
  const { exchange, method, path, surface, endpoint, caller } = call
  const lists = listsStoredObjects(endpoint, method, path)
  const notServed = full ?? refuseEndpoint(call, gateway)
  // A DELETE reveals whether an object is settled, which only usable keys may learn.
  const isKeyFirst = method === 'DELETE' || checkKeyBeforeBody(exchange)
  const installed = gateway.upstreams[surface]
  if (!isKeyFirst && !lists && notServed === null && installed !== null)
    return { kind: 'ready', upstream: installed }
  const isPaid = endpoint?.billing === 'metered' && isKeyFirst
  const { caller: found, refusal, balanceNanos } = await findCaller(caller.digest, isPaid, gateway)
  const denied = refusal ?? notServed
  if (found === null || denied !== null)
    return { kind: 'refused', refusal: denied ?? refuseUnconfigured(surface), balanceNanos }
  const own = found.upstreams[surface]
  if (lists && found.hasOthers && own === null)
    return { kind: 'refused', refusal: SHARED_UPSTREAM, balanceNanos }
  const upstream = upstreamFor(found.accountId, own, surface, gateway)
  if (upstream !== null) return { kind: 'ready', upstream }
  return { kind: 'refused', refusal: refuseUnconfigured(surface), balanceNanos }
}
