import { Readable } from 'node:stream'
import type { Dispatcher, Pool } from 'undici'
import { UPSTREAM_RESET } from './upstream-socket.ts'

/** What upstream says, in order. `data` answers whether more may come at once; if not, `resume()` the call later. */
export interface ReplyReceiver {
  interim(status: number, headers: string[]): void
  head(status: number, reason: string, headers: string[]): void
  data(chunk: Buffer): boolean
}

/** How a call ended. Exactly one of these, once, whatever happened. */
export type CallEnd =
  | { readonly kind: 'complete'; readonly trailers: string[] }
  /** The head had arrived, the rest will not. */
  | { readonly kind: 'cut'; readonly error: Error }
  /** There was no head. `sent` says whether upstream may have seen the request. */
  | { readonly kind: 'failed'; readonly error: Error; readonly sent: boolean }
  /** We gave it up because the client left. */
  | { readonly kind: 'abandoned'; readonly sent: boolean }

export interface UpstreamRequest {
  readonly method: string
  readonly target: string
  readonly headers: string[]
  readonly body: UpstreamBody
}

/** Bytes, in one piece or several, can be sent again on a fresh connection; a stream only once. */
export type UpstreamBody = Buffer | readonly Buffer[] | Readable | null

export interface Call {
  readonly ended: Promise<CallEnd>
  resume(): void
  abandon(): void
}

/**
 * One call upstream: bytes out with back-pressure, the reply handed on chunk by chunk as it arrives. There are no
 * hidden retries, since a retry is a second bill, but for one case: a pooled socket that turns out to be dead
 * before a byte of the request was written to it.
 */
export function forward(pool: Pool, request: UpstreamRequest, receiver: ReplyReceiver): Call {
  const { promise: ended, resolve: finish } = Promise.withResolvers<CallEnd>()
  let controller: Dispatcher.DispatchController | null = null
  let abandoned = false
  let headArrived = false
  let written = false
  let attempts = 0

  function dispatch(): void {
    attempts += 1
    pool.dispatch(
      {
        path: request.target,
        method: request.method as Dispatcher.HttpMethod,
        headers: request.headers,
        // undici sends whatever can be iterated; its types do not say so.
        body: request.body as Buffer | Readable | null,
        // A HEAD, or a body on GET or DELETE, is framed like every other: keep the connection.
        reset: false,
      },
      handler,
    )
  }

  // undici runs these in the async context of whoever opened the socket; identity comes from this closure only.
  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(given) {
      controller = given
      // Aborting here sends nothing, though the socket was ready.
      if (abandoned) return given.abort(new Error('the client left'))
      written = true
    },
    onResponseStart(given, status, _headers, reason) {
      const headers = rawLines(given.rawHeaders)
      if (status >= 100 && status < 200) return receiver.interim(status, headers)
      // undici passes 000 to 099 on, Node will not send them. The throw becomes onResponseError.
      if (status < 100 || status > 999) throw new Error(`upstream answered with status ${status}`)
      headArrived = true
      receiver.head(status, reason ?? '', headers)
    },
    onResponseData(given, chunk) {
      if (!receiver.data(chunk)) given.pause()
    },
    onResponseEnd(given) {
      finish({ kind: 'complete', trailers: rawLines(given.rawTrailers) })
    },
    onResponseError(_given, error) {
      // Nothing here may throw: undici would lose it or make it an uncaught exception.
      if (abandoned) return finish({ kind: 'abandoned', sent: written })
      if (headArrived) return finish({ kind: 'cut', error })
      if (!written && attempts === 1 && diedInPool(error) && !(request.body instanceof Readable))
        return dispatch()
      finish({ kind: 'failed', error, sent: written })
    },
  }

  dispatch()

  return {
    ended,
    resume() {
      controller?.resume()
    },
    abandon() {
      if (abandoned) return
      abandoned = true
      controller?.abort(new Error('the client left'))
    },
  }
}

function diedInPool(error: Error): boolean {
  return 'code' in error && [UPSTREAM_RESET, 'ECONNRESET', 'EPIPE'].includes(String(error.code))
}

/** Bytes to text, one character per byte, so that what is no ASCII comes out as it went in. */
function rawLines(raw: Dispatcher.DispatchController['rawHeaders']): string[] {
  if (!Array.isArray(raw)) return []
  return raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1')))
}
