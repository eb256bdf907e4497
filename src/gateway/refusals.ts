import type { Exchange } from '../http/exchange.ts'
import { TOO_MANY_LINES } from '../http/message-reader.ts'
import { tokensOf } from '../http/raw-headers.ts'
import { type Refusal, refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import type { Surface } from '../kernel/surface.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import { findMeant } from '../providers/find-meant.ts'
import { SURFACES } from '../providers/surfaces.ts'
import type { CallEnd } from './forward.ts'
import { BodyIdle } from './read.ts'

/** The refusals of the data plane that need a sentence of explanation, and the questions that lead to them. */

export function refuseWebSocket(exchange: Exchange): Refusal | null {
  if (!tokensOf(exchange.headers, 'upgrade').includes('websocket')) return null
  const message =
    'WebSocket connections are not served yet. Use the HTTP form of this endpoint, with SSE for streams.'
  // A 426 names the protocol to use instead. What follows the head are frames, not requests.
  return refuse('websocket_not_supported', message, { headers: ['upgrade', 'HTTP/1.1'], close: true })
}

export function refuseTooManyCalls(callsMax: number): Refusal {
  const message = `This key has ${callsMax} calls in flight here already. Try again when some of them have ended.`
  return refuse('too_many_calls', message)
}

export function refuseUnconfigured(surface: Surface): Refusal {
  const { key, url } = SURFACES[surface].upstream.variables
  const message = `No upstream is configured for this surface. Its operator sets ${key} (or ${url}).`
  return refuse('surface_not_configured', message)
}

/** Why no key may call the endpoint, or null. `endpoint` is null for a path that is in no table. */
export function refuseEndpoint(
  endpoint: Endpoint | null,
  method: string,
  path: string,
  settings: { readonly minting: 'pass' | 'refuse'; readonly stateful: 'pass' | 'refuse' },
): Refusal | null {
  const refusal =
    endpoint === null ? refuseMisspelled(method, path) : refuseMinting(endpoint, settings.minting)
  return refusal ?? refuseStored(endpoint, settings.stateful)
}

/** Of what is said of a path that nobody knows. */
const SHOWN_PATH_CHARS_MAX = 200

/** Upstream may obey a spelling that our tables do not have, and nothing would be metered. */
function refuseMisspelled(method: string, path: string): Refusal | null {
  const shown = path.length > SHOWN_PATH_CHARS_MAX ? `${path.slice(0, SHOWN_PATH_CHARS_MAX)}…` : path
  if (path.length > limits.unknownPathCharsMax) {
    return refuse('endpoint_not_metered', `There is no endpoint ${shown}.`)
  }
  const meant = findMeant(method, path)
  if (meant === null) return null
  const message = `There is no endpoint ${shown}. ${meant.template} was probably meant; a wrong base URL is the usual cause.`
  return refuse('endpoint_not_metered', message)
}

function refuseMinting({ billing }: Endpoint, minting: 'pass' | 'refuse'): Refusal | null {
  if (billing !== 'mints_credential' || minting === 'pass') return null
  const message =
    'This endpoint hands out an upstream credential, which would outlive the revocation of your key. This gateway refuses it to every key.'
  return refuse('minting_refused', message)
}

/**
 * Objects stored upstream belong to the account, and all keys share it. An operator who does not want keys to see
 * each other's objects refuses these endpoints, and with them every path of which we do not know what it shows.
 */
function refuseStored(endpoint: Endpoint | null, stateful: 'pass' | 'refuse'): Refusal | null {
  if (stateful === 'pass' || (endpoint !== null && !endpoint.stateful)) return null
  const message =
    'This gateway does not serve endpoints that show or store objects of the shared upstream account.'
  return refuse('endpoint_not_allowed', message)
}

/** What the client may know of a call that brought no head. The cause stays in our log: it names our upstream. */
export function explainFailure(end: CallEnd & { kind: 'failed' }): Refusal {
  const code = 'code' in end.error ? String(end.error.code) : ''
  if (end.error instanceof BodyIdle) {
    return refuse('request_timeout', end.error.message, { close: true })
  }
  if (code.startsWith('HPE_') || code === TOO_MANY_LINES || code === '') {
    return refuse('upstream_invalid_response', 'Upstream answered with something that is not HTTP/1.1.')
  }
  if (!end.sent) return refuse('upstream_unreachable', 'Upstream cannot be reached. Nothing was sent to it.')
  return refuse(
    'upstream_unreachable',
    'Upstream closed the connection before it answered. It may have received the request.',
  )
}
