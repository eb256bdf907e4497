import { refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import type { CallRecord } from '../ledger/call.ts'
import { requestObject } from './request-object.ts'
import { type Management, type OwnRequest, type Route, replyJson, replyRefused } from './route.ts'

/** Another node may settle the call, and tells nobody here: look again this often. */
const LOOK_AGAIN_MS = 1_000

/**
 * The figures of one call, for clients that cannot read trailers. It waits until the call is settled, so that the
 * answer is final; an API key sees its own calls only.
 */
export const getRequest: Route = {
  method: 'GET',
  template: '/gateway/v1/requests/{id}',
  access: 'any_key',
  async handle(request, management) {
    const [id = ''] = request.params
    const call = await settledCall(id, request, management)
    if (call === null || !maySee(request, call)) {
      return replyRefused(refuse('not_found', 'There is no request with this id.'))
    }
    return replyJson(200, requestObject(call), ['cache-control', 'no-store'])
  },
}

function maySee({ caller }: OwnRequest, call: CallRecord): boolean {
  if (caller.accountId !== call.accountId) return false
  return caller.kind === 'admin_key' || caller.keyId === call.keyId
}

async function settledCall(
  id: string,
  request: OwnRequest,
  { store, settlements, clock }: Management,
): Promise<CallRecord | null> {
  const { res } = request.exchange
  const deadlineMs = clock.monotonicMs() + limits.requestWaitMs
  for (;;) {
    // The wait begins before the look, or a settlement between the two would be missed.
    const wait = settlements.wait(id, LOOK_AGAIN_MS)
    const stop = () => wait.stop()
    res.once('close', stop)
    const call = await store.getCall(id)
    const final = call === null || call.state !== 'in_flight' || !maySee(request, call)
    if (!final && !res.destroyed && clock.monotonicMs() < deadlineMs) await wait.done
    res.off('close', stop)
    wait.stop()
    if (final || res.destroyed || clock.monotonicMs() >= deadlineMs) return call
  }
}
