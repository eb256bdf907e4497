import { obfuscation } from '../chat/chat-body.ts'
import type { JsonObject } from '../json.ts'
import { type Frame, namedFrame } from '../sse.ts'
import { countTokens } from '../tokens.ts'
import { finishedItem } from './output-items.ts'
import { responseJson } from './response-json.ts'
import type { ResponsePlan } from './response-plan.ts'

export interface StreamedResponse {
  readonly obfuscates: boolean
  /** Told when the stream is over: how many tokens had left by then, or null if all of it did. */
  readonly onEnd?: (tokens: number | null) => void
}

/** The events of a response, in upstream's order, each with its place in the sequence. */
export function* streamResponse(plan: ResponsePlan, options: StreamedResponse): Generator<Frame> {
  let sequence = 0
  const frame = (type: string, fields: JsonObject, tokens = 0, isDelta = false): Frame => {
    const event = { type, ...fields, sequence_number: sequence }
    sequence += 1
    return namedFrame(type, event, tokens, isDelta)
  }
  let tokensDone = 0
  let words = ''
  let isWhole = false
  try {
    const opening = responseJson(plan, plan.isBackground ? 'queued' : 'in_progress')
    yield frame('response.created', { response: opening })
    if (plan.isBackground) yield frame('response.queued', { response: opening })
    yield frame('response.in_progress', { response: responseJson(plan, 'in_progress') })
    for (const [index, item] of plan.items.entries()) {
      yield frame('response.output_item.added', { output_index: index, item: item.json('in_progress') })
      let tokensPaced = 0
      for (const { type, fields, tokens, isDelta } of item.events()) {
        const delta = typeof fields['delta'] === 'string' ? fields['delta'] : ''
        const padded =
          options.obfuscates && delta !== '' ? { obfuscation: obfuscation(plan.padding, delta) } : {}
        tokensPaced += tokens
        yield frame(type, { output_index: index, ...fields, ...padded }, tokens, isDelta)
        words += delta
      }
      // What is written out of sight takes its time too.
      const unseenTokens = tokensPaced === 0 ? item.tokens : 0
      yield frame(
        'response.output_item.done',
        { output_index: index, item: finishedItem(item) },
        unseenTokens,
      )
      tokensDone += item.tokens
      words = ''
    }
    isWhole = true
    const last = plan.ending === 'incomplete' ? 'response.incomplete' : 'response.completed'
    yield frame(last, { response: responseJson(plan, 'final') })
  } finally {
    // A client that leaves, or a connection that breaks, ends the generator at the event it was to send.
    options.onEnd?.(isWhole ? null : tokensDone + countTokens(words))
  }
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
