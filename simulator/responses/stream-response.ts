import { obfuscation } from '../chat/chat-body.ts'
import type { JsonObject } from '../json.ts'
import { type Frame, namedFrame } from '../sse.ts'
import { countTokens } from '../tokens.ts'
import { finishedItem } from './output-items.ts'
import { responseJson } from './response-json.ts'
import { cutPlan, type ResponsePlan } from './response-plan.ts'

export interface StreamedResponse {
  readonly obfuscates: boolean
  /** Asked before each piece of the output: whether the response is to end here because it was steered. */
  readonly isSteered?: () => boolean
  /** Called when the stream is over, with the response as it was cut, or null if all of the response left. */
  readonly onEnd?: (cut: ResponsePlan | null) => void
}

export interface ResponseEvent {
  readonly event: JsonObject & { readonly type: string }
  readonly tokens: number
  readonly isDelta: boolean
}

/** The events of a response as a stream of server-sent events. */
export function* streamResponse(plan: ResponsePlan, options: StreamedResponse): Generator<Frame> {
  for (const { event, tokens, isDelta } of writeResponse(plan, options)) {
    yield namedFrame(event.type, event, tokens, isDelta)
  }
}

/** The events of a response, in upstream's order, each with its place in the sequence. */
export function* writeResponse(plan: ResponsePlan, options: StreamedResponse): Generator<ResponseEvent> {
  let sequence = 0
  const numbered = (type: string, fields: JsonObject, tokens = 0, isDelta = false): ResponseEvent => {
    const event = { type, ...fields, sequence_number: sequence }
    sequence += 1
    return { event, tokens, isDelta }
  }
  const isSteered = options.isSteered ?? (() => false)
  let tokensDone = 0
  let words = ''
  let isWhole = false
  let isStopped = false
  const standing = (): ResponsePlan =>
    cutPlan(plan, tokensDone + countTokens(words), isStopped ? 'steered' : 'cancelled')
  try {
    const opening = responseJson(plan, plan.isBackground ? 'queued' : 'in_progress')
    yield numbered('response.created', { response: opening })
    if (plan.isBackground) yield numbered('response.queued', { response: opening })
    yield numbered('response.in_progress', { response: responseJson(plan, 'in_progress') })
    for (const [index, item] of plan.items.entries()) {
      isStopped = isSteered()
      if (isStopped) break
      yield numbered('response.output_item.added', { output_index: index, item: item.json('in_progress') })
      let tokensPaced = 0
      for (const { type, fields, tokens, isDelta } of item.events()) {
        isStopped = isDelta && isSteered()
        if (isStopped) break
        const delta = typeof fields['delta'] === 'string' ? fields['delta'] : ''
        const padded =
          options.obfuscates && delta !== '' ? { obfuscation: obfuscation(plan.padding, delta) } : {}
        tokensPaced += tokens
        yield numbered(type, { output_index: index, ...fields, ...padded }, tokens, isDelta)
        words += delta
      }
      if (isStopped) break
      // Hidden output takes its time too: an item without paced events waits for its tokens here.
      const unseenTokens = tokensPaced === 0 ? item.tokens : 0
      yield numbered(
        'response.output_item.done',
        { output_index: index, item: finishedItem(item) },
        unseenTokens,
      )
      tokensDone += item.tokens
      words = ''
    }
    if (isStopped) {
      const cut = standing()
      const [index, item] = [...cut.items.entries()].at(-1) ?? []
      if (item !== undefined && words !== '') {
        for (const { type, fields } of item.events()) {
          if (type.endsWith('.done')) yield numbered(type, { output_index: index, ...fields })
        }
        yield numbered('response.output_item.done', { output_index: index, item: finishedItem(item) })
      }
      yield numbered('response.incomplete', { response: responseJson(cut, 'final') })
      return
    }
    isWhole = true
    const last = plan.ending === 'incomplete' ? 'response.incomplete' : 'response.completed'
    yield numbered(last, { response: responseJson(plan, 'final') })
  } finally {
    // A client that leaves, or a connection that breaks, ends the generator at the event that was to be sent.
    options.onEnd?.(isWhole ? null : standing())
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
