import { createRequire } from 'node:module'
import type { Writable } from 'node:stream'
import type { Side } from './wire-frames.ts'

type Receiver = Writable & Pick<Required<Writable>, '_write'>

/** `ws` exports the class, but its types do not. */
const ws = createRequire(import.meta.url)('ws') as {
  Receiver: new (options: { isServer: boolean }) => Receiver
}

export type WsEvent =
  | { readonly kind: 'message' | 'control'; readonly opcode: number; readonly payload: Buffer }
  | { readonly kind: 'error'; readonly closeCode: number; readonly code: string }

export async function receiveWithWs(bytes: Buffer, from: Side): Promise<WsEvent[]> {
  const events: WsEvent[] = []
  const receiver = new ws.Receiver({ isServer: from === 'client' })
  receiver.on('message', (payload: Buffer, isBinary: boolean) =>
    events.push({ kind: 'message', opcode: isBinary ? 2 : 1, payload }),
  )
  receiver.on('ping', (payload: Buffer) => events.push({ kind: 'control', opcode: 9, payload }))
  receiver.on('pong', (payload: Buffer) => events.push({ kind: 'control', opcode: 10, payload }))
  receiver.on('conclude', (code: number, reason: Buffer) => {
    const head = Buffer.alloc(code === 1005 ? 0 : 2)
    if (code !== 1005) head.writeUInt16BE(code)
    events.push({ kind: 'control', opcode: 8, payload: Buffer.concat([head, reason]) })
  })
  // `_write` reads plain messages synchronously. It unmasks in place, so the bytes are copied.
  let isDone = false
  const { stackTraceLimit } = Error
  // Only the code of an error matters, and its stack trace takes a tenth of the time.
  Error.stackTraceLimit = 0
  const written = new Promise<void>((resolve) => {
    receiver._write(Buffer.from(bytes), 'binary', (error) => {
      if (error) events.push(errorEvent(error))
      isDone = true
      resolve()
    })
  })
  Error.stackTraceLimit = stackTraceLimit
  if (!isDone) await written
  return events
}

function errorEvent(error: Error & { code?: string }) {
  const [symbol] = Object.getOwnPropertySymbols(error).filter((name) => name.description === 'status-code')
  const closeCode = symbol === undefined ? 0 : Number(Reflect.get(error, symbol))
  return { kind: 'error' as const, closeCode, code: error.code ?? '' }
}
