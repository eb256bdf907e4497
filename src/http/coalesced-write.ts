import type { Socket } from 'node:net'
import type { Borrowed } from '../kernel/read-buffer.ts'

/** Enough for most messages with their heads. */
const SCRATCH_BYTES = 8 * 1024

/** What leaves in one write is put together here. Nearly always it has left when the write returns. */
let scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES)

/**
 * Writes a head, a chunk and what comes behind it as one. None of them is needed any more when this returns. False:
 * there is no room for more before `drain`. The socket has to be one of the kernel, which has a copy of what it has
 * taken: a stream in between would hand on the scratch buffer itself.
 */
export function writeCoalesced(
  socket: Socket,
  head: string,
  chunk: Borrowed,
  after: string,
  onWritten?: (error?: Error | null) => void,
): boolean {
  const length = head.length + chunk.length + after.length
  const isScratch = length <= SCRATCH_BYTES && socket.writableLength === 0 && !isEncrypted(socket)
  const bytes = isScratch ? scratch.subarray(0, length) : Buffer.allocUnsafe(length)
  if (head !== '') bytes.write(head, 'latin1')
  bytes.set(chunk, head.length)
  if (after !== '') bytes.write(after, head.length + chunk.length, 'latin1')
  const hasRoom = socket.write(bytes, onWritten)
  // What the kernel did not take at once the socket still has to send: that memory is its own from now on.
  if (isScratch && socket.writableLength > 0) scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES)
  return hasRoom
}

/** Nothing has left such a socket when a write returns. */
function isEncrypted(socket: Socket & { readonly encrypted?: boolean }): boolean {
  return socket.encrypted === true
}
