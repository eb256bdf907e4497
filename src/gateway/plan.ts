import { ambiguityFor } from '../providers/ambiguity.ts'
import { DEFERRED_KINDS } from '../providers/deferred-kinds.ts'
import type { Endpoint, UsageReader } from '../providers/endpoint.ts'
import { namedInFile, namedModels } from '../providers/named-models.ts'
import { modelAsked as modelIn } from '../providers/request-members.ts'
import type { CallPlan, ReadCall } from './call.ts'
import type { Gateway } from './gateway.ts'
import type { BillPlan, MadeFrom } from './pricer.ts'

const NOTHING: MadeFrom = { fileBound: null }

/** The file that a batch is made of, as the store knows it. Null for nearly every call. */
export function findMadeFrom(call: ReadCall, gateway: Gateway): Promise<MadeFrom> | null {
  return call.endpoint?.model === 'batch_file' ? findFile(call, gateway) : null
}

/** The bound of the batch file and its models, as they were found when this key uploaded the file. */
async function findFile({ read, digest }: ReadCall, { store }: Gateway): Promise<MadeFrom> {
  const { batchFile } = namedInFile(read.facts)
  if (batchFile === null) return NOTHING
  // A store that cannot be asked fails again, and is reported, when the call is to be admitted.
  const file = await store.findBatchFile(digest, batchFile).catch(() => null)
  return file === null ? NOTHING : { fileBound: file.bound, fileModels: file.models }
}

/**
 * Plans what the call may cost, which models it names and how it will be priced, by its request and by the file that
 * it is made from.
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
    reader: bill.makes === null ? readerOf(bill, endpoint) : DEFERRED_KINDS[bill.makes].reader,
    shows: endpoint?.shows ?? null,
  }
}

function readerOf({ metered }: BillPlan, endpoint: Endpoint | null): UsageReader | null {
  return metered && endpoint?.billing === 'metered' ? endpoint.usage : null
}
