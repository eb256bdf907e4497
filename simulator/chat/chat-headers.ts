import type { Identity } from '../identity.ts'
import type { Header } from '../reply.ts'

const requestsLimit = 10_000
const tokensLimit = 30_000_000

export function chatHeaders(identity: Identity, tokens = 0): Header[] {
  return [
    ['openai-organization', 'simulator-org'],
    ['openai-processing-ms', '42'],
    ['openai-project', 'proj_simulator'],
    ['openai-version', '2020-10-01'],
    ['x-ratelimit-limit-requests', String(requestsLimit)],
    ['x-ratelimit-limit-tokens', String(tokensLimit)],
    ['x-ratelimit-remaining-requests', String(requestsLimit - 1)],
    ['x-ratelimit-remaining-tokens', String(Math.max(0, tokensLimit - tokens))],
    ['x-ratelimit-reset-requests', '6ms'],
    ['x-ratelimit-reset-tokens', '0s'],
    ['x-request-id', newChatRequestId(identity)],
    ['access-control-expose-headers', 'X-Request-ID'],
    ['server', 'simulator'],
  ]
}

export function exhaustedHeaders(identity: Identity): Header[] {
  return [
    ['retry-after', '2'],
    ['x-ratelimit-limit-requests', String(requestsLimit)],
    ['x-ratelimit-remaining-requests', '0'],
    ['x-ratelimit-reset-requests', '2s'],
    ['x-request-id', newChatRequestId(identity)],
    ['server', 'simulator'],
  ]
}

function newChatRequestId(identity: Identity): string {
  return `req_${identity.hex(32)}`
}
