import type { RequestFacts } from '../metering/request-facts.ts'
import type { Surface } from './endpoint.ts'
import { membersOf } from './pick-members.ts'
import { isPickedArray, isPickedObject } from './read-models.ts'

/** What a request says about fees that its reply does not state. */
export interface RequestFees {
  /** Chat Completions searches the web once for it. */
  readonly asksForSearch: boolean
  /** Code that a message has run costs nothing beside web tools of February 2026 or later. */
  readonly codeRunsFree: boolean
}

const DATED_WEB_TOOL = /^web_(?:search|fetch)_(\d{8})$/
const FREE_CODE_SINCE = '20260209'

export function readFees(surface: Surface, facts: RequestFacts): RequestFees {
  if (surface === 'messages') return { asksForSearch: false, codeRunsFree: hasFreeCode(facts) }
  const options = facts.kind === 'json' ? facts.scan.members.get('web_search_options') : undefined
  return { asksForSearch: options !== undefined && options.kind !== 'null', codeRunsFree: false }
}

function hasFreeCode(facts: RequestFacts): boolean {
  const tools = membersOf(facts).get('tools')
  if (!isPickedArray(tools)) return false
  return tools.some((tool) => {
    const type = isPickedObject(tool) ? tool.get('type') : null
    const date = typeof type === 'string' ? DATED_WEB_TOOL.exec(type)?.[1] : undefined
    return date !== undefined && date >= FREE_CODE_SINCE
  })
}
