import { MARKS } from '../metering/content-marks.ts'
import type { RequestFacts } from '../metering/request-facts.ts'
import { ambiguityOf } from './ambiguity.ts'
import type { Endpoint } from './endpoint.ts'
import { membersOf } from './pick-members.ts'
import { isPickedArray, isPickedObject } from './read-models.ts'

/**
 * The member by which a call that is free by itself has upstream store files for search, or may: what cannot be read may
 * say anything. Null where there is none.
 */
export function storingMember(
  endpoint: Endpoint | null,
  facts: RequestFacts,
): 'tool_resources' | 'attachments' | null {
  if (endpoint?.mayStoreFiles !== true || facts.kind === 'not_read') return null
  // Attachments that are to be searched are put into a store of the thread.
  if (facts.kind === 'json' && (facts.scan.marks & MARKS.attachments) !== 0) return 'attachments'
  return createsStores(facts) ? 'tool_resources' : null
}

function createsStores(facts: RequestFacts): boolean {
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
