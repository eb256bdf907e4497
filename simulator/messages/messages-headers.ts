import type { Identity } from '../identity.ts'
import type { Header } from '../reply.ts'

const organizationId = '5a1f0c3e-7d42-4b8e-9f36-51a7e0d2c4b8'

const limits = [
  ['requests', 4_000],
  ['input-tokens', 2_000_000],
  ['output-tokens', 400_000],
  ['tokens', 2_400_000],
] as const

export function messagesHeaders(identity: Identity, requestId: string): Header[] {
  return [
    ['request-id', requestId],
    ['anthropic-organization-id', organizationId],
    ...rateLimitHeaders(identity, 1),
    ['server', 'simulator'],
  ]
}

/** Rate limits as upstream reports them. The simulator counts nothing: `used` is the amount that this request is said to take. */
export function rateLimitHeaders(identity: Identity, used: number): Header[] {
  const reset = identity
    .now()
    .toISOString()
    .replace(/\.\d{3}Z$/, 'Z')
  return limits.flatMap(([name, limit]): Header[] => [
    [`anthropic-ratelimit-${name}-limit`, String(limit)],
    [`anthropic-ratelimit-${name}-remaining`, String(Math.max(0, limit - used))],
    [`anthropic-ratelimit-${name}-reset`, reset],
  ])
}

export function newMessagesRequestId(identity: Identity): string {
  return `req_011C${identity.base62(20)}`
}
