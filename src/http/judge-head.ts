import { type Refusal, refuse } from '../kernel/errors.ts'
import { type RawHeaders, valuesOf } from './raw-headers.ts'

/** Host names, IP literals and ports. A slash, `#`, `?`, `@` or blank in Host has moved the route elsewhere before. */
const HOST = /^[A-Za-z0-9._~%!$&'()*+,;=:[\]-]+$/

/**
 * What Node's parser lets through though it could be read in two ways: other HTTP versions, doubled or odd Host
 * lines, transfer codings we do not decode, transfer coding on HTTP/1.0. Each closes the connection.
 */
export function judgeHead(httpVersion: string, method: string, headers: RawHeaders): Refusal | null {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    return refuse('bad_request', 'Only HTTP/1.1 and HTTP/1.0 are served here.', { close: true })
  }
  if (method === 'TRACE' || method === 'CONNECT') {
    return refuse('method_not_allowed', `${method} is not served here.`, { close: true })
  }
  const hosts = valuesOf(headers, 'host')
  if (hosts.length > 1) return refuse('bad_request', 'There is more than one Host header.', { close: true })
  const [host] = hosts
  if (host === undefined && httpVersion === '1.1') {
    return refuse('bad_request', 'The Host header is missing.', { close: true })
  }
  if (host !== undefined && !HOST.test(host)) {
    return refuse('bad_request', 'The Host header is not a host name with an optional port.', { close: true })
  }
  // Node takes any value with this word in it for the expectation it knows.
  if (valuesOf(headers, 'expect').some((value) => value.trim().toLowerCase() !== '100-continue')) {
    return refuse('expectation_failed', 'The only expectation served here is 100-continue.', { close: true })
  }
  const codings = valuesOf(headers, 'transfer-encoding')
  if (codings.length === 0) return null
  if (httpVersion === '1.0') {
    return refuse('bad_request', 'HTTP/1.0 has no Transfer-Encoding.', { close: true })
  }
  if (codings.length > 1 || codings[0]?.trim().toLowerCase() !== 'chunked') {
    return refuse('bad_request', 'The only transfer coding served here is chunked.', { close: true })
  }
  return null
}
