import type { Pick } from '../metering/json-picker.ts'
import type { Picked } from '../metering/json-place.ts'
import type { Ambiguity, RecordsFound } from '../metering/request-facts.ts'
import type { RecordWatch } from '../metering/request-reader.ts'
import { givenTwice, unreadable } from './ambiguity.ts'
import type { Endpoint } from './endpoint.ts'
import { BATCH, withItems } from './model-places.ts'
import { isPickedObject, ModelNames, readItem, readModels } from './read-models.ts'

/** More than any batch may have. */
const ENTRIES_MAX = 100_000

/** Where a request of the Chat surface holds items, each of which can bring tools, and so models. */
const ITEMS: ReadonlyMap<string, string> = new Map([
  ['/v1/responses', 'input'],
  ['/v1/responses/compact', 'input'],
  ['/v1/responses/input_tokens', 'input'],
  ['/v1/conversations', 'items'],
  ['/v1/conversations/{conversation_id}/items', 'items'],
])

/** What has to be looked at inside the body of a request, as it passes, to know its models; null where it is nothing. */
export function watchRecords(endpoint: Endpoint | null): RecordWatch | null {
  if (endpoint === null || endpoint.reads === 'nothing') return null
  if (endpoint.model === 'batch_entries') return watchBatch()
  const items = endpoint.surface === 'chat' ? ITEMS.get(endpoint.template) : undefined
  return items === undefined ? null : watchItems(items)
}

function watchBatch(): RecordWatch {
  const names = new ModelNames()
  let entries = 0
  return {
    place: BATCH,
    take(entry) {
      entries++
      const body = isPickedObject(entry) ? entry.get('params') : undefined
      if (isPickedObject(body)) readModels(body, names)
      else names.cannotRead('"requests"')
    },
    found(pick) {
      if (entries === 0) names.leaveOpen('The batch names no models.')
      if (entries > ENTRIES_MAX) names.leaveOpen(`The batch has more than ${ENTRIES_MAX} requests.`)
      return summarise(pick, names, false)
    },
  }
}

function watchItems(name: string): RecordWatch {
  const names = new ModelNames()
  let bringsTools = false
  return {
    place: withItems(name),
    take(item) {
      bringsTools ||= hasTools(item)
      readItem(item, names)
    },
    found: (pick) => summarise(pick, names, bringsTools),
  }
}

function hasTools(item: Picked): boolean {
  return isPickedObject(item) && (item.get('tools') ?? null) !== null
}

function summarise(pick: Pick, names: ModelNames, bringsTools: boolean): RecordsFound {
  const ambiguity = ambiguityOfPick(pick)
  return { models: names.names, unknown: ambiguity?.detail ?? names.unknown, ambiguity, bringsTools }
}

function ambiguityOfPick(pick: Pick): Ambiguity | null {
  if (pick.kind === 'unreadable') return unreadable(pick.reason)
  const [twice] = pick.duplicates
  return twice === undefined ? null : givenTwice(twice)
}
