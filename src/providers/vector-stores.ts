import type { RequestFacts } from '../metering/request-facts.ts'
import { ambiguityOf } from './ambiguity.ts'
import type { Endpoint } from './endpoint.ts'
import { membersOf } from './pick-members.ts'
import { isPickedArray, isPickedObject } from './read-models.ts'

/** Whether a call that is free by itself has upstream store files for search, or may: what cannot be read may say anything. */
export function createsVectorStores(endpoint: Endpoint | null, facts: RequestFacts): boolean {
  if (endpoint?.mayStoreFiles !== true || facts.kind === 'not_read') return false
  if (facts.kind !== 'json') return true
  const given = facts.scan.members.get('tool_resources')
  if (given === undefined || given.kind === 'null') return false
  // Of one that is too long, nothing was looked at.
  if (given.kind === 'too_long' || ambiguityOf(facts) !== null) return true
  const resources = membersOf(facts).get('tool_resources')
  if (!isPickedObject(resources)) return true
  const search = resources.get('file_search') ?? null
  if (!isPickedObject(search)) return search !== null
  const stores = search.get('vector_stores') ?? null
  return isPickedArray(stores) ? stores.length > 0 : stores !== null
}
