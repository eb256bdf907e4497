import type { ToolCall } from '../generate.ts'
import type { Identity } from '../identity.ts'
import { imageMakers, imageTokens } from '../images.ts'
import { asText, isObject, type JsonObject, parseJson } from '../json.ts'
import { countTokens, cutToTokens, splitIntoPieces } from '../tokens.ts'
import { event, type ItemEvent, type ItemStatus, type OutputItem, written } from './output-items.ts'

const piecesLength = 12
const pictureSide = 1_024

/** The items that a call of a tool makes, whatever the kind of the tool. */
export function toolItems(
  { tool, argumentsJson }: ToolCall,
  identity: Identity,
  isCut: boolean,
): OutputItem[] {
  const callId = `call_${identity.base62(24)}`
  const id = (prefix: string): string => `${prefix}_${identity.hex(48)}`
  const given = parseJson(argumentsJson)
  const query = asText(isObject(given) ? given['query'] : '')
  const tokens = countTokens(argumentsJson)
  const containerId = `cntr_${identity.hex(48)}`
  switch (tool.kind) {
    case 'custom':
      return [customCallItem(id('ctc'), callId, tool.name, argumentsJson, isCut)]
    case 'local_shell': {
      const action = { type: 'exec', command: given ?? [], env: {}, timeout_ms: null, user: null }
      const json = {
        type: 'local_shell_call',
        call_id: callId,
        action: { ...action, working_directory: null },
      }
      return [plainItem(id('lsh'), json, tokens)]
    }
    case 'shell': {
      const action = { commands: given ?? [], max_output_length: null, timeout_ms: null }
      const isServer = tool.isServer === true
      const environment = isServer
        ? { type: 'container_reference', container_id: containerId }
        : { type: 'local' }
      const json = { type: 'shell_call', call_id: callId, action, environment }
      const output = [{ stdout: 'README.md\n', stderr: '', outcome: { type: 'exit', exit_code: 0 } }]
      const result = { type: 'shell_call_output', call_id: callId, max_output_length: null, output }
      const item = plainItem(id('sh'), json, tokens)
      return isServer ? [item, { ...plainItem(id('sho'), result, 0), isServer: true }] : [item]
    }
    case 'apply_patch':
      return [
        plainItem(id('apc'), { type: 'apply_patch_call', call_id: callId, operation: given ?? {} }, tokens),
      ]
    case 'computer':
    case 'computer_use_preview': {
      const action = tool.kind === 'computer' ? { actions: [given ?? {}] } : { action: given ?? {} }
      const json = { type: 'computer_call', call_id: callId, ...action, pending_safety_checks: [] }
      return [plainItem(id('cu'), json, tokens)]
    }
    case 'web_search':
    case 'web_search_preview': {
      const action = { type: 'search', query, queries: [query] }
      return [serverItem(id('ws'), 'web_search_call', 'searching', { action }, tokens)]
    }
    case 'file_search':
      return [
        serverItem(id('fs'), 'file_search_call', 'searching', { queries: [query], results: null }, tokens),
      ]
    case 'code_interpreter': {
      const made = { code: asText(given), container_id: containerId, outputs: null }
      return [serverItem(id('ci'), 'code_interpreter_call', 'interpreting', made, tokens, codeEvents)]
    }
    case 'image_generation':
      return [pictureItem(id('ig'), query, tokens)]
    default:
      return [functionCallItem(id('fc'), callId, tool.name, argumentsJson, isCut)]
  }
}

/** An item that has no events but its beginning and its end. */
function plainItem(id: string, members: JsonObject, tokens: number): OutputItem {
  return {
    id,
    tokens,
    isCut: false,
    json: (status) => ({ id, ...members, status }),
    events: () => [],
    cutTo: () => null,
  }
}

/** The item of a tool that upstream runs by itself: its events tell the stages of the work. */
function serverItem(
  id: string,
  type: string,
  doing: string,
  members: JsonObject,
  tokens: number,
  between: (id: string, members: JsonObject) => Iterable<ItemEvent> = () => [],
): OutputItem {
  return {
    ...plainItem(id, {}, tokens),
    isServer: true,
    json: (status) => ({ id, type, status, ...members }),
    *events() {
      yield event(`response.${type}.in_progress`, { item_id: id })
      yield* between(id, members)
      yield event(`response.${type}.${doing}`, { item_id: id })
      yield event(`response.${type}.completed`, { item_id: id })
    },
  }
}

function* codeEvents(id: string, { code }: JsonObject): Generator<ItemEvent> {
  const name = 'response.code_interpreter_call_code'
  for (const delta of splitIntoPieces(asText(code), piecesLength)) {
    yield written(`${name}.delta`, { item_id: id, delta }, delta)
  }
  yield event(`${name}.done`, { item_id: id, code })
}

/** The tokens of an image are not among the text model's tokens: they are told in `tool_usage`. */
function pictureItem(id: string, prompt: string, tokens: number): OutputItem {
  const picture = (imageMakers.get('png')?.(prompt) ?? Buffer.alloc(0)).toString('base64')
  const facts = {
    size: `${pictureSide}x${pictureSide}`,
    quality: 'medium',
    background: 'opaque',
    output_format: 'png',
  }
  const made = { result: picture, revised_prompt: prompt, action: 'generate', ...facts }
  const partial = { item_id: id, partial_image_index: 0, partial_image_b64: picture, ...facts }
  const type = 'image_generation_call'
  const item = serverItem(id, type, 'generating', made, tokens, function* () {
    yield event(`response.${type}.partial_image`, partial)
  })
  return {
    ...item,
    image: { input: countTokens(prompt), output: imageTokens('medium', pictureSide, pictureSide) },
    json: (status) => ({ id, type, status, ...made, ...(status === 'in_progress' ? { result: null } : {}) }),
  }
}

function customCallItem(id: string, callId: string, name: string, input: string, isCut: boolean): OutputItem {
  return {
    id,
    tokens: countTokens(input),
    isCut,
    json: (status) => ({
      id,
      type: 'custom_tool_call',
      status,
      call_id: callId,
      name,
      input: status === 'in_progress' ? '' : input,
    }),
    *events() {
      for (const delta of splitIntoPieces(input, piecesLength)) {
        yield written('response.custom_tool_call_input.delta', { item_id: id, delta }, delta)
      }
      yield event('response.custom_tool_call_input.done', { item_id: id, input })
    },
    cutTo: (tokens) => customCallItem(id, callId, name, cutToTokens(input, tokens), true),
  }
}

function functionCallItem(
  id: string,
  callId: string,
  name: string,
  argumentsJson: string,
  isCut: boolean,
): OutputItem {
  return {
    id,
    tokens: countTokens(argumentsJson),
    isCut,
    json: (status: ItemStatus) => ({
      id,
      type: 'function_call',
      status,
      call_id: callId,
      name,
      arguments: status === 'in_progress' ? '' : argumentsJson,
    }),
    *events() {
      for (const delta of splitIntoPieces(argumentsJson, piecesLength)) {
        yield written('response.function_call_arguments.delta', { item_id: id, delta }, delta)
      }
      const done = { item_id: id, name, arguments: argumentsJson }
      yield event('response.function_call_arguments.done', done)
    },
    cutTo: (tokens) => functionCallItem(id, callId, name, cutToTokens(argumentsJson, tokens), true),
  }
}
