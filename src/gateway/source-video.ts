import type { Usage } from '../kernel/usage.ts'
import { sourceOf } from '../providers/chat/videos.ts'
import { askUpstream, OBJECT_ID } from './ask-upstream.ts'
import type { ReadCall } from './call.ts'
import type { Gateway } from './gateway.ts'

/** Whether the call makes a video from another one, whose model and size are its own and are not in the request. */
export function isMadeFromVideo({ endpoint }: ReadCall): boolean {
  return endpoint?.billing === 'metered' && endpoint.usage === 'video' && endpoint.template !== '/v1/videos'
}

/**
 * The video that another one is to be made from, as upstream shows it: the hold of the call goes by it. Upstream knows those
 * that were not made here as well. It is asked only where a limit depends on the hold, so that a stranger, or a key that
 * has nothing left, has nothing asked. Null where it was not asked, or the source is an upload or cannot be had.
 */
export async function askForSource(
  { endpoint, target, read, surface, upstream, digest }: ReadCall,
  { store, clock }: Gateway,
): Promise<Usage | null> {
  const id = endpoint === null ? null : sourceOf(endpoint, target.path, read.facts)
  if (id === null || !OBJECT_ID.test(id)) return null
  // A store that cannot be asked refuses the call when it is to be admitted.
  const caller = await store.lookUpKey(digest, clock.nowMs()).catch(() => null)
  if (caller?.kind !== 'api_key') return null
  const { capNanos, spentNanos, creditEnforced, balanceNanos } = caller.means
  const isSpent = (capNanos !== null && spentNanos >= capNanos) || (creditEnforced && balanceNanos <= 0n)
  if (isSpent || (capNanos === null && !creditEnforced)) return null
  const answer = await askUpstream(surface, upstream, `/v1/videos/${id}`, 'video')
  return answer.kind === 'answered' ? (answer.metered?.usage ?? null) : null
}
