import { Socket, type SocketConstructorOpts } from 'node:net'
import { readBuffer } from '../kernel/read-buffer.ts'

/** The parts of a socket that Node does not document. They have been there since Node 0.10. */
interface Handled {
  _handle: object | null
}

/**
 * A socket that was accepted, reading into the shared buffer. Node lets only those choose their buffer that connect
 * themselves, so the connection is handed over to a new one. The accepted one is done with: Node's server does not
 * count this connection any more.
 */
export function adoptSocket(accepted: Socket, onChunk: (chunk: Buffer) => void): Socket {
  const handed = accepted as unknown as Handled
  const handle = handed._handle
  handed._handle = null
  const options = {
    handle,
    readable: true,
    writable: true,
    onread: {
      buffer: readBuffer,
      callback(bytes: number) {
        onChunk(readBuffer.subarray(0, bytes))
        return true
      },
    },
  }
  accepted.destroy()
  return new Socket(options as SocketConstructorOpts)
}
