import type { Call } from './call.ts'
import type { BodyReply, Header } from './reply.ts'

/** OPTIONS is answered without a check of the key, as a browser's preflight carries no key. */
export function preflightReply(headers: Call['headers']): BodyReply {
  const asked = headers['access-control-request-headers']
  const allowed: Header[] = [
    ['access-control-allow-origin', '*'],
    ['access-control-allow-methods', 'GET, POST, PUT, PATCH, DELETE, OPTIONS'],
    ['access-control-allow-headers', typeof asked === 'string' ? asked : '*'],
    ['access-control-max-age', '600'],
    ['server', 'simulator'],
  ]
  return { kind: 'body', status: 200, headers: allowed, body: Buffer.alloc(0), pace: null, tokens: 0 }
}
