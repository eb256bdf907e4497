import type { Surface } from './endpoint.ts'

/** What the `tools` of a request say about its cost. */
export interface RequestTools {
  /** Any tool at all. */
  readonly declared: boolean
  /** A tool that upstream runs, whose results the model reads: its input is more than the body holds. */
  readonly runsUpstream: boolean
  /** 0 without such a tool, null with one whose calls nothing limits. */
  readonly webSearchesMax: number | null
  readonly fileSearchesMax: number | null
  /** The model that draws, if an image tool is there. */
  readonly imageModel: string | null
  /** Models that tools name for themselves (an advisor). */
  readonly otherModels: readonly string[]
}

export const NO_REQUEST_TOOLS: RequestTools = {
  declared: false,
  runsUpstream: false,
  webSearchesMax: 0,
  fileSearchesMax: 0,
  imageModel: null,
  otherModels: [],
}

/** What upstream uses for an image tool that names no model. */
export const DEFAULT_IMAGE_MODEL = 'gpt-image-2'

/** Tools that the client runs. Every other type runs upstream, the ones we have not heard of included. */
const CLIENT_TOOLS: Readonly<Record<Surface, RegExp>> = {
  messages: /^(?:custom|bash_\d+|text_editor_\d+|computer_\d+|memory_\d+)$/,
  chat: /^(?:function|custom|local_shell|apply_patch|computer_use_preview|computer)$/,
}

/** Reads the JSON of a `tools` member. What cannot be read is taken for the dearest it could be. */
export function readRequestTools(surface: Surface, json: string): RequestTools {
  const list: Tool[] = []
  if (!collectTools(JSON.parse(json), NAMESPACE_DEPTH_MAX, list)) return UNKNOWN_TOOLS
  const typeOf = (tool: Tool) => (typeof tool['type'] === 'string' ? tool['type'] : 'custom')
  const ofType = (start: string) => list.filter((tool) => typeOf(tool).startsWith(start))
  const image = ofType('image_generation').at(0)
  const models = list.filter((tool) => tool !== image).map((tool) => tool['model'])
  return {
    declared: list.length > 0,
    runsUpstream: list.some((tool) => !CLIENT_TOOLS[surface].test(typeOf(tool))),
    webSearchesMax: usesOf(ofType('web_search')),
    fileSearchesMax: usesOf(ofType('file_search')),
    imageModel: image === undefined ? null : String(image['model'] ?? DEFAULT_IMAGE_MODEL),
    otherModels: models.filter((model) => typeof model === 'string'),
  }
}

type Tool = Readonly<Record<string, unknown>>

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

/** Tools that were declared and could not be read. */
export const UNKNOWN_TOOLS: RequestTools = {
  declared: true,
  runsUpstream: true,
  webSearchesMax: null,
  fileSearchesMax: null,
  imageModel: null,
  otherModels: [],
}

function usesOf(tools: readonly Tool[]): number | null {
  let sum = 0
  for (const { max_uses: uses } of tools) {
    if (typeof uses !== 'number' || !Number.isSafeInteger(uses) || uses < 0) return null
    sum += uses
  }
  return sum
}
