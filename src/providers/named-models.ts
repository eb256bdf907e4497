// Stub by the lead so that the gateway starts; the real one is being written and replaces this file.
import type { RequestFacts } from '../metering/request-facts.ts'
import { modelAsked } from '../metering/request-facts.ts'
import type { Endpoint, Surface } from './endpoint.ts'
export function namedModels(_e: Endpoint | null, _s: Surface, _m: string, _p: string, facts: RequestFacts) {
  const model = modelAsked(facts)
  return { names: model === null ? [] : [model], unknown: null, batchFile: null }
}
export function ambiguityOf(_facts: RequestFacts): string | null {
  return null
}
