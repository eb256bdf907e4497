import { isObject, type JsonObject } from '../metering/json-shape.ts'
import { PRICE_TERMS } from '../pricing/modifiers.ts'
import { NO_REQUEST_TOOLS, type RequestTools } from '../pricing/request-profile.ts'
import { asLimit, isGiven, LIMITLESS } from './request-facts.ts'
import type { ToolRules } from './surface.ts'

/** How often upstream may use a tool whose request states no limit. */
export const USES_WITHOUT_LIMIT = 8

/** Tools that the client runs and describes. */
const CLIENT_TOOLS = /^(?:function|custom|namespace)$/

export function readTools(
  rules: ToolRules,
  tools: readonly JsonObject[] | null,
  callsMax: number | null,
): RequestTools {
  if (tools === null) return { ...NO_REQUEST_TOOLS, uses: USES_WITHOUT_LIMIT }
  if (tools.length === 0) return NO_REQUEST_TOOLS
  const usesOf = (ofKind: readonly JsonObject[]) => usesMax(rules, ofKind, callsMax)
  const ofType = (start: string) => tools.filter((tool) => typeOf(tool).startsWith(start))
  const image = ofType('image_generation').at(0)
  return {
    uses: usesOf(tools.filter((tool) => runsUpstream(rules, tool))),
    webSearches: usesOf(ofType('web_search')),
    fileSearches: usesOf(ofType('file_search')),
    containers: tools.filter((tool) => hasContainer(rules, tool)).length,
    imageModel: image === undefined ? null : toolModel(image),
  }
}

/** The model that a tool uses: the one it names, or an image tool's default. */
export function toolModel(tool: JsonObject): string | null {
  const { model } = tool
  if (typeof model === 'string') return model
  return !isGiven(model) && typeOf(tool).startsWith('image_generation') ? PRICE_TERMS.chat.imageModel : null
}

export function typeOf(tool: JsonObject): string {
  return typeof tool['type'] === 'string' ? tool['type'] : 'custom'
}

/** All tools of a request. A namespace contains tools but no namespaces. Null if something is unreadable. */
export function toolList(tools: unknown, isInNamespace = false): readonly JsonObject[] | null {
  if (!isGiven(tools)) return NO_TOOLS
  if (!Array.isArray(tools)) return null
  const list: JsonObject[] = []
  for (const tool of tools as readonly unknown[]) {
    if (!isObject(tool) || (isGiven(tool['type']) && typeof tool['type'] !== 'string')) return null
    const inner = isInNamespace && isGiven(tool['tools']) ? null : toolList(tool['tools'], true)
    if (inner === null) return null
    list.push(tool)
    for (const each of inner) list.push(each)
  }
  return list
}

const NO_TOOLS: readonly JsonObject[] = []

function runsUpstream(rules: ToolRules, tool: JsonObject): boolean {
  const type = typeOf(tool)
  if (CLIENT_TOOLS.test(type) || rules.runByClient.test(type)) return false
  if (type === 'tool_search') return tool['execution'] !== 'client'
  return type !== 'shell' || hasContainer(rules, tool)
}

/** A shell runs in a container unless it is declared local. */
function hasContainer({ container }: ToolRules, tool: JsonObject): boolean {
  const type = typeOf(tool)
  if (container?.test(type) !== true) return false
  const { environment } = tool
  return type !== 'shell' || !isObject(environment) || environment['type'] !== 'local'
}

/** How often these tools may be used: as stated, else USES_WITHOUT_LIMIT times. */
function usesMax(rules: ToolRules, tools: readonly JsonObject[], callsMax: number | null): number {
  const limited = tools.filter((tool) => rules.limited.test(typeOf(tool)))
  const others = tools.length - limited.length
  if (rules.limit === 'each') {
    const stated = limited.map((tool) => asLimit(tool['max_uses']))
    const uses = stated.map((max) => (max === LIMITLESS || max === 0 ? USES_WITHOUT_LIMIT : max))
    return uses.reduce((sum, max) => sum + max, others * USES_WITHOUT_LIMIT)
  }
  if (callsMax === null || limited.length === 0) return tools.length === 0 ? 0 : USES_WITHOUT_LIMIT
  return callsMax + (others === 0 ? 0 : USES_WITHOUT_LIMIT)
}
