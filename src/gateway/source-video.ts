import type { Usage } from '../kernel/usage.ts'
import { sourceOf } from '../providers/chat/videos.ts'
import { checkKey } from './admit.ts'
import { askUpstream, OBJECT_ID } from './ask-upstream.ts'
import type { ReadCall } from './call.ts'
import type { Denial } from './deny.ts'
import type { Gateway } from './gateway.ts'

/** What nearly every call is made from. */
export const NO_SOURCE = { source: null } as const

/** Whether the call makes a video from another one, whose model and size are its own and are not in the request. */
export function isMadeFromVideo({ endpoint }: ReadCall): boolean {
  return endpoint?.billing === 'metered' && endpoint.usage === 'videos' && endpoint.template !== '/v1/videos'
}

/**
 * The video that another one is to be made from, as upstream shows it, for the hold of the call. Upstream knows those that
 * were not made here as well. The key is asked about first: a stranger must not have upstream asked. Null where the source
 * is an upload, or cannot be had: then nothing is known of it, and all that is left is held.
 */
export async function askForSource(
  { endpoint, target, read, surface, upstream, digest, exchange }: ReadCall,
  gateway: Gateway,
): Promise<{ readonly denial: Denial } | { readonly source: Usage | null }> {
  const denial = await checkKey(digest, true, exchange, gateway)
  if (denial !== null) return { denial }
  const id = endpoint === null ? null : sourceOf(endpoint, target.path, read.facts)
  if (id === null || !OBJECT_ID.test(id)) return NO_SOURCE
  const answer = await askUpstream(surface, upstream, `/v1/videos/${id}`, 'videos')
  return { source: answer.kind === 'answered' ? (answer.metered?.usage ?? null) : null }
}
