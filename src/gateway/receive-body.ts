import { clientLeft, type Exchange } from '../http/exchange.ts'
import { BodyPace, type BodyTimes } from '../http/incoming-request.ts'
import { type Refusal, refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import type { Borrowed } from '../kernel/memory.ts'
import type { Denial } from './deny.ts'
import { HeldBody } from './held-body.ts'
import { type BodyRoom, type KeyShare, NoBodyRoom } from './key-shares.ts'

export interface ReceiveOptions {
  readonly room: BodyRoom
  readonly times: BodyTimes
}

/** The key that sends the body. */
export interface Sender {
  readonly share: KeyShare
  /** Asks whether the key may send a body. Null: that was asked already. */
  readonly checkKey: (() => Promise<Denial | null>) | null
}

/** Sees each chunk as it arrives. A promise means: wait for it before the next one. */
interface Looker {
  readonly write: (chunk: Borrowed) => Promise<void> | null
}

export type Received =
  | { readonly kind: 'received'; readonly body: HeldBody }
  | ({ readonly kind: 'refused' } & Denial)
  | { readonly kind: 'client_left' }

/**
 * Takes the request's body in, whole, with a limit on its size, on its silence and on its slowness. The key of one that
 * does not come at once is asked about meanwhile: without one a slow client would keep its connection.
 */
export function receiveBody(
  exchange: Exchange,
  options: ReceiveOptions,
  sender: Sender,
  looker: Looker | null,
): Promise<Received> {
  return new Promise((resolve, reject) => {
    const { req, res } = exchange
    if (clientLeft(exchange)) return resolve({ kind: 'client_left' })
    const { room, times } = options
    const body = new HeldBody(room, sender.share)
    let finished = false

    function finish(result: Received | null): void {
      if (finished) return
      finished = true
      clearTimeout(keyTimer)
      pace?.stop()
      req.release()
      res.whenClosed.remove(onLeft)
      if (result?.kind !== 'received') body.dispose()
      if (result !== null) resolve(result)
    }

    let pace: BodyPace | null = null
    /** Arriving bytes do not put the question off. */
    let keyTimer: NodeJS.Timeout | undefined
    /** Most bodies come in one piece with their head, and need no timers. */
    function waitForMore(): void {
      if (finished) return
      res.whenClosed.add(onLeft)
      pace = new BodyPace(times, tooLate)
      if (sender.checkKey === null) pace.watchSilence()
      else keyTimer = setTimeout(checkKey, Math.min(limits.bodyMsBeforeKeyCheck, times.idleTimeoutMs))
    }

    function checkKey(): void {
      pace?.watchSilence()
      sender.checkKey?.().then(
        (denial) => {
          if (denial !== null) finish({ kind: 'refused', ...denial })
        },
        (error: unknown) => {
          finish(null)
          reject(error)
        },
      )
    }

    function tooLate(message: string): void {
      finish(refused(refuse('request_timeout', message, { close: true })))
    }

    function onData(chunk: Borrowed): boolean {
      if (body.length + chunk.length > limits.bodyBytesMax) finish(refused(tooLarge()))
      else if (pace?.arrived(chunk.length) !== false) return take(chunk)
      return true
    }

    /** False: no more before the promises below have resolved. */
    function take(chunk: Borrowed): boolean {
      const looked = looker?.write(chunk) ?? null
      const appended = body.append(chunk)
      if (looked === null && appended === null) return true
      pace?.paused()
      Promise.all([looked, appended]).then(
        () => {
          if (!finished) pace?.resumed()
          req.resume()
        },
        (error: unknown) => {
          const message =
            error instanceof NoBodyRoom ? error.message : 'There is no room to hold the request body.'
          finish(refused(refuse('overloaded', message)))
        },
      )
      return false
    }
    function onEnd(): void {
      finish({ kind: 'received', body })
    }
    function onLeft(): void {
      finish({ kind: 'client_left' })
    }

    req.receive({ data: onData, end: onEnd })
    // After the piece that is being read now.
    queueMicrotask(waitForMore)
  })
}

/** Refuses at once what announces itself as too large, before a byte of it is taken in. */
export function refuseAnnouncedLength(contentLength: number | null): Refusal | null {
  return contentLength !== null && contentLength > limits.bodyBytesMax ? tooLarge() : null
}

function refused(refusal: Refusal): Received {
  return { kind: 'refused', refusal, balanceNanos: null }
}

function tooLarge(): Refusal {
  const mebibytes = limits.bodyBytesMax / 1024 / 1024
  return refuse('body_too_large', `The request body is larger than ${mebibytes} MiB.`)
}
