import type { Usage } from '../kernel/usage.ts'
import { modelAsked as modelIn } from '../metering/request-facts.ts'
import { ambiguityFor } from '../providers/ambiguity.ts'
import { namedModels } from '../providers/named-models.ts'
import type { CallPlan, ReadCall } from './call.ts'
import type { Gateway } from './gateway.ts'

/**
 * What the call may cost, which models it names and how it will be priced, by what was read of it. Asks no store. `source`
 * is the video that it makes another one from.
 */
export function planCall(call: ReadCall, { pricer, clock }: Gateway, source: Usage | null): CallPlan {
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
    source,
    atMs: clock.nowMs(),
  })
  return {
    modelAsked,
    models: namedModels(endpoint, surface, method, path, facts, query, bill.modelDefault),
    ambiguity: ambiguityFor(endpoint, facts),
    bill,
    reader: bill.metered && endpoint?.billing === 'metered' ? endpoint.usage : null,
    shows: endpoint?.shows ?? null,
  }
}
