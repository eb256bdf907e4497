import { obfuscation } from '../chat/chat-body.ts'
import type { JsonObject } from '../json.ts'
import { type Frame, namedFrame } from '../sse.ts'
import { finishedItem } from './output-items.ts'
import { responseJson } from './response-json.ts'
import type { ResponsePlan } from './response-plan.ts'

/** The events of a response, in upstream's order, each with its place in the sequence. */
export function* streamResponse(plan: ResponsePlan, obfuscates: boolean): Generator<Frame> {
  let sequence = 0
  const frame = (type: string, fields: JsonObject, tokens = 0, isDelta = false): Frame => {
    const event = { type, ...fields, sequence_number: sequence }
    sequence += 1
    return namedFrame(type, event, tokens, isDelta)
  }
  yield frame('response.created', { response: responseJson(plan, 'in_progress') })
  yield frame('response.in_progress', { response: responseJson(plan, 'in_progress') })
  for (const [index, item] of plan.items.entries()) {
    yield frame('response.output_item.added', { output_index: index, item: item.json('in_progress') })
    for (const { type, fields, tokens, isDelta } of item.events()) {
      const delta = fields['delta']
      const padded =
        obfuscates && typeof delta === 'string' ? { obfuscation: obfuscation(plan.padding, delta) } : {}
      yield frame(type, { output_index: index, ...fields, ...padded }, tokens, isDelta)
    }
    yield frame('response.output_item.done', { output_index: index, item: finishedItem(item) })
  }
  const last = plan.isIncomplete ? 'response.incomplete' : 'response.completed'
  yield frame(last, { response: responseJson(plan, 'final') })
}

export function responseErrorFrame(sent: number): Frame {
  return namedFrame('error', {
    type: 'error',
    code: 'server_error',
    message: 'The server had an error while processing your request. Sorry about that!',
    param: null,
    sequence_number: sent,
  })
}
