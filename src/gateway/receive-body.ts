import { clientLeft, type Exchange } from '../http/exchange.ts'
import { type Refusal, refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import type { ByteBudget } from './byte-budget.ts'
import { HeldBody } from './held-body.ts'

export interface ReceiveOptions {
  readonly memory: ByteBudget
  readonly tempDir: string
  readonly idleTimeoutMs: number
  /** Sees each chunk as it arrives. A promise means: wait for it before the next one. */
  look(chunk: Buffer): Promise<void> | null
}

export type Received =
  | { readonly kind: 'received'; readonly body: HeldBody }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'client_left' }

/** Takes the request's body in, whole, with a limit on its size and on its silence. */
export function receiveBody(exchange: Exchange, options: ReceiveOptions): Promise<Received> {
  return new Promise((resolve) => {
    const { req, res } = exchange
    if (clientLeft(exchange)) return resolve({ kind: 'client_left' })
    const body = new HeldBody(options.memory, options.tempDir)
    let finished = false

    function finish(result: Received): void {
      if (finished) return
      finished = true
      if (idle !== null) clearTimeout(idle)
      req.release()
      res.whenClosed.remove(onLeft)
      if (result.kind !== 'received') body.dispose()
      resolve(result)
    }

    let idle: NodeJS.Timeout | null = null
    /** Most bodies come in one piece with their head, and are whole before anybody could wait for them. */
    function waitForMore(): void {
      if (finished) return
      res.whenClosed.add(onLeft)
      idle = setTimeout(() => {
        const seconds = Math.round(options.idleTimeoutMs / 1_000)
        const message = `The request body stopped arriving for ${seconds} s.`
        finish({ kind: 'refused', refusal: refuse('request_timeout', message, { close: true }) })
      }, options.idleTimeoutMs)
    }

    function onData(chunk: Buffer): void {
      idle?.refresh()
      if (body.length + chunk.length > limits.bodyBytesMax) {
        finish({ kind: 'refused', refusal: tooLarge() })
        return
      }
      const looked = options.look(chunk)
      const appended = body.append(chunk)
      if (looked === null && appended === null) return
      req.pause()
      Promise.all([looked, appended]).then(
        () => {
          // Our own slowness is not the client's silence.
          if (!finished) idle?.refresh()
          req.resume()
        },
        () =>
          finish({
            kind: 'refused',
            refusal: refuse('overloaded', 'There is no room to hold the request body.'),
          }),
      )
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

function tooLarge(): Refusal {
  const mebibytes = limits.bodyBytesMax / 1024 / 1024
  return refuse('body_too_large', `The request body is larger than ${mebibytes} MiB.`)
}
