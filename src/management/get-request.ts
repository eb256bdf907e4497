import { refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import type { CallRecord } from '../ledger/call.ts'
import { replyUnstored } from './reply-unstored.ts'
import { requestObject, requestSchema } from './request-object.ts'
import { defineRoute, type Management, type OwnRequest, replyRefused } from './route.ts'

/** Another node may settle the call, and tells nobody here: look again this often. */
const LOOK_AGAIN_MS = 1_000

/**
 * The figures of one call, for clients that cannot read trailers. It waits until the call is settled, so that the
 * answer is final; an API key sees its own calls only.
 */
export const getRequest = defineRoute({
  method: 'GET',
  template: '/gateway/v1/requests/{id}',
  access: 'any_key',
  operationId: 'get_request',
  summary: 'Show a call and what it cost',
  description:
    `Waits up to ${limits.requestWaitMs / 1_000} seconds for a call in flight to be settled, then answers without ` +
    'its figures. A call that waits for room is told at once, and a refused one as well. An API key sees its own ' +
    'calls only.',
  query: null,
  body: null,
  repeatable: false,
  success: { status: 200, schema: requestSchema },
  errors: ['bad_request', 'not_found'],
  async handle(request, management) {
    const [id = ''] = request.params
    const call = await settledCall(id, request, management)
    if (call === null || !maySee(request, call)) {
      return replyRefused(refuse('not_found', 'There is no request with this id.'))
    }
    return replyUnstored(200, requestObject(call))
  },
})

function maySee({ caller }: OwnRequest, call: CallRecord): boolean {
  if (caller.accountId !== call.accountId) return false
  return caller.kind === 'admin_key' || caller.keyId === call.keyId
}

async function settledCall(
  id: string,
  request: OwnRequest,
  { store, settlements, clock, waitingCalls, refusedCalls }: Management,
): Promise<CallRecord | null> {
  // A call that waits may wait for longer than whoever asks, who is told so at once.
  const waiting = waitingCalls.find(id)
  if (waiting !== null) return waiting
  // The record of a refusal follows its answer by a moment.
  await refusedCalls.written()
  const { res } = request.exchange
  const deadlineMs = clock.monotonicMs() + limits.requestWaitMs
  for (;;) {
    // The wait begins before the look, or a settlement between the two would be missed.
    const wait = settlements.wait(id, LOOK_AGAIN_MS)
    const stop = () => wait.stop()
    res.whenClosed.add(stop)
    const call = await store.getCall(id)
    const final = call === null || call.state !== 'in_flight' || !maySee(request, call)
    if (!final && !res.destroyed && clock.monotonicMs() < deadlineMs) await wait.done
    res.whenClosed.remove(stop)
    wait.stop()
    if (final || res.destroyed || clock.monotonicMs() >= deadlineMs) return call
  }
}
