import { count, LIMITLESS } from './count.ts'
import type { Surface } from './endpoint.ts'

/** What the `tools` of a request say about its cost. */
export interface RequestTools {
  /** The instructions that upstream puts before the prompt because of them. */
  readonly promptTokens: number
  /** How often those may be used that upstream runs, whose results the model reads: null where nothing limits it. */
  readonly usesMax: number | null
  /** 0 without such a tool, null with one whose calls nothing limits. */
  readonly webSearchesMax: number | null
  readonly fileSearchesMax: number | null
  /** Containers to run code in, each of which is paid for. */
  readonly containers: number
  /** The model that draws, if an image tool is there. */
  readonly imageModel: string | null
  /** Models that are asked by a tool, as often as it may be used. */
  readonly advisors: readonly Advisor[]
}

export interface Advisor {
  readonly model: string
  /** Of one answer; null is the limit of the model. */
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

/** What upstream uses for an image tool that names no model. */
export const DEFAULT_IMAGE_MODEL = 'gpt-image-2'

/** What upstream puts before the prompt when tools are declared, and again for each that it describes itself. */
const TOOL_PROMPT_TOKENS = 2_048
/** One name for some thirty tools. */
const TOOLSET_PROMPT_TOKENS = 8 * TOOL_PROMPT_TOKENS

/** Tools that the client runs and describes. */
const OWN_TOOLS = /^(?:function|custom|namespace)$/
/** Those that upstream describes. Every other type runs upstream, the ones we have not heard of included. */
const CLIENT_TOOLS: Readonly<Record<Surface, RegExp>> = {
  messages: /^(?:bash_\d+|text_editor_\d+|memory_\d+|computer_(?:toolset_)?\d+|browser_toolset_\d+)$/,
  chat: /^(?:local_shell|apply_patch|computer_use_preview|computer)$/,
}
/** On Messages these know `max_uses`, and no others. */
const LIMITED_ONE_BY_ONE = /^(?:web_search|web_fetch|advisor)_\d+$/
/** On Responses `max_tool_calls` counts the calls of these together. */
const LIMITED_TOGETHER =
  /^(?:web_search(?:_preview)?(?:_\d{4}_\d{2}_\d{2})?|file_search|code_interpreter|shell)$/

/** Reads the JSON of a `tools` member. What cannot be read is taken for the dearest it could be. */
export function readRequestTools(surface: Surface, json: string, callsMax: number | null): RequestTools {
  const list: Tool[] = []
  if (!collectTools(JSON.parse(json), NAMESPACE_DEPTH_MAX, list)) return UNKNOWN_TOOLS
  if (list.length === 0) return NO_REQUEST_TOOLS
  const usesOf = surface === 'messages' ? usesOfOne : (tools: readonly Tool[]) => usesOfAll(tools, callsMax)
  const ofType = (start: string) => list.filter((tool) => typeOf(tool).startsWith(start))
  const image = ofType('image_generation').at(0)
  return {
    promptTokens: list.reduce((sum, tool) => sum + promptTokensOf(surface, tool), TOOL_PROMPT_TOKENS),
    usesMax: usesOf(list.filter((tool) => runsUpstream(surface, tool))),
    webSearchesMax: usesOf(ofType('web_search')),
    fileSearchesMax: usesOf(ofType('file_search')),
    containers: list.filter((tool) => hasContainer(surface, tool)).length,
    imageModel: image === undefined ? null : imageModelOf(image),
    advisors: list.filter((tool) => tool !== image).flatMap(advisorOf),
  }
}

type Tool = Readonly<Record<string, unknown>>

function typeOf(tool: Tool): string {
  return typeof tool['type'] === 'string' ? tool['type'] : 'custom'
}

/** A namespace holds tools, and no namespaces: one inside of another is not read. */
const NAMESPACE_DEPTH_MAX = 1

/** Tools can hold tools: all of them, whoever holds them. False if there is something that cannot be read. */
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

function runsUpstream(surface: Surface, tool: Tool): boolean {
  const type = typeOf(tool)
  if (OWN_TOOLS.test(type) || CLIENT_TOOLS[surface].test(type)) return false
  if (type === 'tool_search') return tool['execution'] !== 'client'
  return type !== 'shell' || hasContainer(surface, tool)
}

/** A shell runs in a container, unless it is said to run where the client is. */
function hasContainer(surface: Surface, tool: Tool): boolean {
  if (surface !== 'chat') return false
  if (typeOf(tool) === 'code_interpreter') return true
  return typeOf(tool) === 'shell' && (tool['environment'] as Tool | null | undefined)?.['type'] !== 'local'
}

function promptTokensOf(surface: Surface, tool: Tool): number {
  const type = typeOf(tool)
  if (OWN_TOOLS.test(type)) return 0
  return surface === 'messages' && type.includes('_toolset_') ? TOOLSET_PROMPT_TOKENS : TOOL_PROMPT_TOKENS
}

function usesOfOne(tools: readonly Tool[]): number | null {
  let sum = 0
  for (const tool of tools) {
    const uses = LIMITED_ONE_BY_ONE.test(typeOf(tool)) ? count(tool['max_uses']) : LIMITLESS
    if (uses === LIMITLESS || uses === 0) return null
    sum += uses
  }
  return sum
}

function usesOfAll(tools: readonly Tool[], callsMax: number | null): number | null {
  if (tools.length === 0) return 0
  return tools.every((tool) => LIMITED_TOGETHER.test(typeOf(tool))) ? callsMax : null
}

/** A name that is no text is nobody's: readModels refuses it, or leaves it to upstream to refuse. */
function imageModelOf({ model }: Tool): string | null {
  if (model === null || model === undefined) return DEFAULT_IMAGE_MODEL
  return typeof model === 'string' ? model : null
}

/** Whatever names a model has it asked. */
function advisorOf(tool: Tool): Advisor[] {
  const { model, max_tokens: limit } = tool
  if (typeof model !== 'string') return []
  const maxOutputTokens = limit === null || limit === undefined ? null : count(limit)
  return [{ model, maxOutputTokens, usesMax: usesOfOne([tool]) ?? 1 }]
}
