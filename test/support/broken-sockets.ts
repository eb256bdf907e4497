import { Socket } from 'node:net'

/** Loaded before a program: sockets write past the `_write` of the instance, as a future version of Node might. */
const write = Reflect.get(Socket.prototype, '_write') as (...args: unknown[]) => void

Socket.prototype.write = function (this: Socket, chunk: string | Uint8Array): boolean {
  write.call(this, Buffer.from(chunk), 'buffer', () => {})
  return true
}
