import type { Socket } from 'node:net'

/** Enough for most messages with their heads. */
const DESK_BYTES = 8 * 1024

/** Where what leaves in one write is put together. Nearly always it has left when the write returns. */
let desk = Buffer.allocUnsafeSlow(DESK_BYTES)

/**
 * Writes a head, a chunk and what comes behind it as one. None of them is needed any more when this returns. False:
 * there is no room for more before `drain`. The socket has to be one of the kernel, which has a copy of what it has
 * taken: a stream in between would hand on the desk itself.
 */
export function sendTogether(
  socket: Socket,
  head: string,
  chunk: Buffer,
  after: string,
  onWritten?: (error?: Error | null) => void,
): boolean {
  const length = head.length + chunk.length + after.length
  const isAtDesk = length <= DESK_BYTES && socket.writableLength === 0 && !isEncrypted(socket)
  const bytes = isAtDesk ? desk.subarray(0, length) : Buffer.allocUnsafe(length)
  if (head !== '') bytes.write(head, 'latin1')
  bytes.set(chunk, head.length)
  if (after !== '') bytes.write(after, head.length + chunk.length, 'latin1')
  const hasRoom = socket.write(bytes, onWritten)
  // What the kernel did not take at once the socket still has to send: that memory is its own from now on.
  if (isAtDesk && socket.writableLength > 0) desk = Buffer.allocUnsafeSlow(DESK_BYTES)
  return hasRoom
}

/** Nothing has left such a socket when a write returns. */
function isEncrypted(socket: Socket & { readonly encrypted?: boolean }): boolean {
  return socket.encrypted === true
}
