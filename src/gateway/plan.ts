import type { Bound } from '../kernel/money.ts'
import type { Usage } from '../kernel/usage.ts'
import { modelAsked as modelIn } from '../metering/request-facts.ts'
import { ambiguityFor } from '../providers/ambiguity.ts'
import { type Endpoint, READER_OF, type UsageReader } from '../providers/endpoint.ts'
import { namedInFile, namedModels } from '../providers/named-models.ts'
import type { CallPlan, ReadCall } from './call.ts'
import type { Gateway } from './gateway.ts'
import type { BillPlan } from './pricer.ts'

/**
 * What the call may cost, which models it names and how it will be priced, by what was read of it and of what it is made
 * from. Asks no store.
 */
export function planCall(
  call: ReadCall,
  { fileBound, source }: { readonly fileBound: Bound | null; readonly source: Usage | null },
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
    fileBound,
    source,
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

/** What the file may cost that a batch is to be made of, as it was found when this key uploaded it. */
export async function findFileBound({ read, digest }: ReadCall, { store }: Gateway): Promise<Bound | null> {
  const { batchFile } = namedInFile(read.facts)
  // A store that cannot be asked is found out again, and told, when the call is to be admitted.
  return batchFile === null ? null : await store.findBatchFile(digest, batchFile).catch(() => null)
}
