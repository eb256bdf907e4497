import type { Surface } from '../kernel/surface.ts'
import { DEFAULT_IMAGE_MODEL } from './chat/images.ts'
import { count, LIMITLESS } from './request-members.ts'
import type { ToolRules } from './surface.ts'
import { SURFACES } from './surfaces.ts'

/** The limits and models that the `tools` of a request set for its cost. */
export interface RequestTools {
  /** The instructions that upstream puts before the prompt because of the tools. */
  readonly promptTokens: number
  /** How often tools may be used that upstream runs, whose results the model reads: null where nothing limits it. */
  readonly usesMax: number | null
  /** 0 without a search tool, null with one whose calls nothing limits. */
  readonly webSearchesMax: number | null
  readonly fileSearchesMax: number | null
  /** Containers to run code in, each of which is paid for. */
  readonly containers: number
  /** The model of the image tool, if there is one. */
  readonly imageModel: string | null
  /** Models that a tool asks, as often as the tool may be used. */
  readonly advisors: readonly Advisor[]
}

export interface Advisor {
  readonly model: string
  /** The limit of one answer; null is the limit of the model. */
  readonly maxOutputTokens: number | null
  readonly usesMax: number
}

export const NO_REQUEST_TOOLS: RequestTools = {
  promptTokens: 0,
  usesMax: 0,
  webSearchesMax: 0,
  fileSearchesMax: 0,
  containers: 0,
  imageModel: null,
  advisors: [],
}

/** Tools that were declared and could not be read. */
export const UNKNOWN_TOOLS: RequestTools = {
  ...NO_REQUEST_TOOLS,
  usesMax: null,
  webSearchesMax: null,
  fileSearchesMax: null,
}

/** Tokens that upstream puts before the prompt when tools are declared, and again for each tool that it describes itself. */
const TOOL_PROMPT_TOKENS = 2_048
const TOOLSET_PROMPT_TOKENS = 8 * TOOL_PROMPT_TOKENS

/** Tools that the client runs and describes. */
const OWN_TOOLS = /^(?:function|custom|namespace)$/

/** Reads the JSON of a `tools` member. Tools that cannot be read are taken for the dearest they could be. */
export function readRequestTools(surface: Surface, json: string, callsMax: number | null): RequestTools {
  const list: Tool[] = []
  if (!collectTools(JSON.parse(json), NAMESPACE_DEPTH_MAX, list)) return UNKNOWN_TOOLS
  if (list.length === 0) return NO_REQUEST_TOOLS
  const rules = SURFACES[surface].tools
  const usesOf = (tools: readonly Tool[]) => usesMax(rules, tools, callsMax)
  const ofType = (start: string) => list.filter((tool) => typeOf(tool).startsWith(start))
  const image = ofType('image_generation').at(0)
  return {
    promptTokens: list.reduce((sum, tool) => sum + promptTokensOf(rules, tool), TOOL_PROMPT_TOKENS),
    usesMax: usesOf(list.filter((tool) => runsUpstream(rules, tool))),
    webSearchesMax: usesOf(ofType('web_search')),
    fileSearchesMax: usesOf(ofType('file_search')),
    containers: list.filter((tool) => hasContainer(rules, tool)).length,
    imageModel: image === undefined ? null : imageModelOf(image),
    advisors: list.filter((tool) => tool !== image).flatMap((tool) => advisorOf(rules, tool)),
  }
}

type Tool = Readonly<Record<string, unknown>>

function typeOf(tool: Tool): string {
  return typeof tool['type'] === 'string' ? tool['type'] : 'custom'
}

/** A namespace holds tools, and no namespaces: a namespace inside of another is not read. */
const NAMESPACE_DEPTH_MAX = 1

/** Collects all tools at every level, since tools can hold tools. False if there is something that cannot be read. */
function collectTools(tools: unknown, depthLeft: number, list: Tool[]): boolean {
  if (!Array.isArray(tools)) return false
  for (const tool of tools as readonly unknown[]) {
    if (typeof tool !== 'object' || tool === null) return false
    const held = 'tools' in tool ? tool.tools : null
    list.push(tool as Tool)
    if (held === null || held === undefined) continue
    if (depthLeft === 0 || !collectTools(held, depthLeft - 1, list)) return false
  }
  return true
}

function runsUpstream(rules: ToolRules, tool: Tool): boolean {
  const type = typeOf(tool)
  if (OWN_TOOLS.test(type) || rules.runByClient.test(type)) return false
  if (type === 'tool_search') return tool['execution'] !== 'client'
  return type !== 'shell' || hasContainer(rules, tool)
}

/** A shell runs in a container, unless it is said to run where the client is. */
function hasContainer({ container }: ToolRules, tool: Tool): boolean {
  const type = typeOf(tool)
  if (container?.test(type) !== true) return false
  return type !== 'shell' || (tool['environment'] as Tool | null | undefined)?.['type'] !== 'local'
}

function promptTokensOf({ toolset }: ToolRules, tool: Tool): number {
  const type = typeOf(tool)
  if (OWN_TOOLS.test(type)) return 0
  return toolset?.test(type) === true ? TOOLSET_PROMPT_TOKENS : TOOL_PROMPT_TOKENS
}

/** How often these tools may be used; null where nothing limits it. */
function usesMax(rules: ToolRules, tools: readonly Tool[], callsMax: number | null): number | null {
  if (tools.length === 0) return 0
  if (!tools.every((tool) => rules.limited.test(typeOf(tool)))) return null
  if (rules.limit === 'together') return callsMax
  let sum = 0
  for (const tool of tools) {
    const uses = count(tool['max_uses'])
    if (uses === LIMITLESS || uses === 0) return null
    sum += uses
  }
  return sum
}

/** A name that is not a text is no model's: readModels refuses it, or leaves it to upstream to refuse. */
function imageModelOf({ model }: Tool): string | null {
  if (model === null || model === undefined) return DEFAULT_IMAGE_MODEL
  return typeof model === 'string' ? model : null
}

/** A tool that names a model has upstream ask that model. */
function advisorOf(rules: ToolRules, tool: Tool): Advisor[] {
  const { model, max_tokens: limit } = tool
  if (typeof model !== 'string') return []
  const maxOutputTokens = limit === null || limit === undefined ? null : count(limit)
  return [{ model, maxOutputTokens, usesMax: usesMax(rules, [tool], null) ?? 1 }]
}
