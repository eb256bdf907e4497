import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { chatFailures } from './chat/chat-error.ts'
import { Refusal, type Surface } from './refusal.ts'

/** Refuses a request without the provider's key. No key configured means that any request is welcome. */
export function checkKey(surface: Surface, headers: IncomingHttpHeaders, key: string | undefined): void {
  if (surface === 'messages') refuseBrowsers(headers)
  if (key === undefined) return
  const bearer = /^Bearer\s+(.*)$/i.exec(headers.authorization ?? '')?.[1]
  const own = headers['x-api-key']
  if (surface === 'messages') checkMessagesKey(key, typeof own === 'string' ? own : undefined, bearer)
  else checkChatKey(key, bearer)
}

function checkMessagesKey(key: string, own: string | undefined, bearer: string | undefined): void {
  if (own === undefined && bearer === undefined) throw new Refusal(401, 'x-api-key header is required')
  if (own !== undefined && !isSame(own, key)) throw new Refusal(401, 'invalid x-api-key')
  if (own === undefined && bearer !== undefined && !isSame(bearer, key)) {
    throw new Refusal(401, 'Invalid bearer token')
  }
}

function checkChatKey(key: string, bearer: string | undefined): void {
  if (bearer === undefined) {
    throw new Refusal(
      401,
      "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
    )
  }
  if (isSame(bearer, key)) return
  const failure = chatFailures.get(401)
  throw new Refusal(401, failure?.message ?? 'Incorrect API key provided', { code: 'invalid_api_key' })
}

/** Upstream refuses calls from a web page unless a header of the page states that it accepts the danger. */
function refuseBrowsers(headers: IncomingHttpHeaders): void {
  if (headers.origin === undefined || headers['anthropic-dangerous-direct-browser-access'] === 'true') return
  throw new Refusal(
    401,
    "CORS requests must set 'anthropic-dangerous-direct-browser-access' header to allow direct browser access",
  )
}

function isSame(given: string, expected: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(expected))
}
