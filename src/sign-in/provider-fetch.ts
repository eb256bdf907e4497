import type { CustomFetchOptions } from 'openid-client'
import type { EgressRules } from '../http/egress.ts'
import { requestWhole } from '../http/request-whole.ts'

/** A provider that hangs or never ends must not keep a sign-in. */
const ANSWER_MS = 10_000
const ANSWER_BYTES_MAX = 1024 ** 2

/** Sends the library's requests by the gateway's own client, so that they take its proxy. Redirects are not followed. */
export function providerFetch(egress: EgressRules) {
  return async (url: string, options: CustomFetchOptions): Promise<Response> => {
    const { method, headers, body, signal } = options
    const pieces = body == null ? null : [Buffer.from(await new Response(body).arrayBuffer())]
    const lines = Object.entries(headers).flat()
    const answer = await requestWhole(
      { url: new URL(url), method, headers: lines, body: pieces },
      egress,
      { answerMs: ANSWER_MS, bytesMax: ANSWER_BYTES_MAX },
      signal,
    )
    const answered = new Headers()
    for (let at = 0; at < answer.headers.length; at += 2)
      answered.append(answer.headers[at] ?? '', answer.headers[at + 1] ?? '')
    // These statuses must have no body.
    const isEmpty = [204, 205, 304].includes(answer.status)
    return new Response(isEmpty ? null : Uint8Array.from(answer.body), {
      status: answer.status,
      headers: answered,
    })
  }
}
