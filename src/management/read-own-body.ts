import { clientLeft, type Exchange, sendContinue } from '../http/exchange.ts'
import { BodyPace, type BodyTimes } from '../http/incoming-request.ts'
import { firstValue } from '../http/raw-headers.ts'
import { type Refusal, refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import { type Borrowed, copyIfBorrowed } from '../kernel/read-buffer.ts'

export type OwnBody =
  | { readonly kind: 'body'; readonly bytes: Buffer }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'client_left' }

/** The body of a request to one of our own endpoints, whole, with a limit on its size and on its silence. */
export function readOwnBody(exchange: Exchange, times: BodyTimes): Promise<OwnBody> {
  return new Promise((resolve) => {
    const { req, res, headers } = exchange
    if (clientLeft(exchange)) return resolve({ kind: 'client_left' })
    if (Number(firstValue(headers, 'content-length') ?? 0) > limits.ownBodyBytesMax) {
      return resolve({ kind: 'refused', refusal: refuseTooLarge() })
    }
    const chunks: Buffer[] = []
    let bytes = 0

    function finish(result: OwnBody): void {
      pace.stop()
      req.release()
      res.whenClosed.remove(onLeft)
      resolve(result)
    }

    function tooLate(message: string): void {
      finish({ kind: 'refused', refusal: refuse('request_timeout', message, { close: true }) })
    }

    const pace = new BodyPace(times, tooLate)
    pace.watchSilence()

    function onData(chunk: Borrowed): boolean {
      bytes += chunk.length
      if (!pace.arrived(chunk.length)) return true
      if (bytes > limits.ownBodyBytesMax) finish({ kind: 'refused', refusal: refuseTooLarge() })
      else chunks.push(copyIfBorrowed(chunk))
      return true
    }
    function onEnd(): void {
      finish({ kind: 'body', bytes: Buffer.concat(chunks) })
    }
    function onLeft(): void {
      finish({ kind: 'client_left' })
    }

    res.whenClosed.add(onLeft)
    sendContinue(exchange)
    req.receive({ data: onData, end: onEnd })
  })
}

export function refuseTooLarge(): Refusal {
  return refuse('body_too_large', `The body is larger than ${limits.ownBodyBytesMax / 1024} KiB.`)
}
