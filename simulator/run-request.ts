import type { Call, Handler } from './call.ts'
import type { Identity } from './identity.ts'
import { isObject } from './json.ts'
import { Refusal } from './refusal.ts'
import type { BodyReply } from './reply.ts'

export interface Answer {
  readonly status: number
  readonly json: unknown
}

/** Answers one request of a batch as the endpoint itself would have done. */
export function runRequest(
  call: Call,
  handle: Handler,
  body: unknown,
  errorReply: (refusal: Refusal, identity: Identity) => BodyReply,
): Answer {
  try {
    if (isObject(body) && body['stream'] === true) throw new Refusal(400, 'stream: not supported in a batch')
    const reply = handle({
      ...call,
      body: Buffer.from(JSON.stringify(body ?? null)),
      contentType: 'application/json',
      query: new URLSearchParams(),
      params: [],
    })
    if (reply.kind === 'body') return answerOf(reply)
    throw new Refusal(400, 'A stream cannot be answered in a batch.')
  } catch (error) {
    if (error instanceof Refusal) return answerOf(errorReply(error, call.identity))
    throw error
  }
}

function answerOf(reply: BodyReply): Answer {
  return { status: reply.status, json: JSON.parse(reply.body.toString('utf8')) }
}
