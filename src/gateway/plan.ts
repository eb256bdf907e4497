import { ambiguityFor } from '../providers/ambiguity.ts'
import { sourceOf } from '../providers/chat/videos.ts'
import { type Endpoint, READER_OF, type UsageReader } from '../providers/endpoint.ts'
import { namedInFile, namedModels } from '../providers/named-models.ts'
import { modelAsked as modelIn } from '../providers/request-members.ts'
import { refuseSpent } from './admit.ts'
import { askUpstream, OBJECT_ID } from './ask-upstream.ts'
import type { CallPlan, ReadCall } from './call.ts'
import type { Gateway } from './gateway.ts'
import type { BillPlan, MadeFrom } from './pricer.ts'

const NOTHING: MadeFrom = { fileBound: null, video: null }

/** The file or video that the call is made from, as the store or upstream knows it. Null for nearly every call. */
export function findMadeFrom(call: ReadCall, gateway: Gateway): Promise<MadeFrom> | null {
  const { endpoint } = call
  if (endpoint?.model === 'batch_file') return findFile(call, gateway)
  const isVideo = endpoint?.billing === 'metered' && endpoint.usage === 'video'
  return isVideo && endpoint.template !== '/v1/videos' ? findVideo(call, endpoint, gateway) : null
}

/** The bound of the batch file and its models, as they were found when this key uploaded the file. */
async function findFile({ read, digest }: ReadCall, { store }: Gateway): Promise<MadeFrom> {
  const { batchFile } = namedInFile(read.facts)
  if (batchFile === null) return NOTHING
  // A store that cannot be asked fails again, and is reported, when the call is to be admitted.
  const file = await store.findBatchFile(digest, batchFile).catch(() => null)
  return file === null ? NOTHING : { ...NOTHING, fileBound: file.bound, fileModels: file.models }
}

/**
 * The source video as upstream shows it, which knows videos that were not made here as well. Upstream is asked only where a
 * limit depends on the hold, so that an unknown key, or a key that has nothing left, causes no question.
 */
async function findVideo(
  { target, read, surface, upstream, digest }: ReadCall,
  endpoint: Endpoint,
  { store, clock }: Gateway,
): Promise<MadeFrom> {
  const id = sourceOf(endpoint, target.path, read.facts)
  if (id === null || !OBJECT_ID.test(id)) return NOTHING
  const atMs = clock.nowMs()
  const caller = await store.lookUpKey(digest, atMs).catch(() => null)
  if (caller?.kind !== 'api_key') return NOTHING
  const { capNanos, creditEnforced } = caller.means
  const isLimited = capNanos !== null || creditEnforced
  if (!isLimited || refuseSpent(caller.means, atMs) !== null) return NOTHING
  const answer = await askUpstream(surface, upstream, `/v1/videos/${id}`, 'video')
  return { ...NOTHING, video: answer.kind === 'answered' ? (answer.metered?.usage ?? null) : null }
}

/**
 * Plans what the call may cost, which models it names and how it will be priced, by its request and by the file or video
 * that it is made from.
 */
export function planCall(
  call: ReadCall,
  madeFrom: MadeFrom | null,
  { pricer, clock }: Pick<Gateway, 'pricer' | 'clock'>,
): CallPlan {
  const { exchange, target, surface, endpoint, request } = call
  const { facts } = call.read
  const { method } = exchange
  const { path, query } = target
  const modelAsked = modelIn(facts)
  const bill = pricer.plan({
    surface,
    method,
    path,
    endpoint,
    facts,
    modelAsked,
    bodyBytes: request.lengthBytes,
    madeFrom: madeFrom ?? NOTHING,
    atMs: clock.nowMs(),
  })
  return {
    modelAsked,
    models: namedModels(endpoint, surface, method, path, facts, query, bill.modelDefault),
    ambiguity: ambiguityFor(endpoint, facts),
    bill,
    reader: bill.makes === null ? readerOf(bill, endpoint) : READER_OF[bill.makes],
    shows: endpoint?.shows ?? null,
  }
}

function readerOf({ metered }: BillPlan, endpoint: Endpoint | null): UsageReader | null {
  return metered && endpoint?.billing === 'metered' ? endpoint.usage : null
}
