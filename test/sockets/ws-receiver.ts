import { createRequire } from 'node:module'
import type { Writable } from 'node:stream'
import type { Deflate } from '../../src/sockets/inflater.ts'
import type { Side } from './wire-frames.ts'

interface PerMessageDeflate {
  params: unknown
  _inflate: unknown
  decompress(data: Buffer, fin: boolean, done: (error: Error | null, inflated: Buffer) => void): void
}

type Receiver = Writable & Pick<Required<Writable>, '_write'>

/** `ws` exports both classes, and its types have neither. */
const ws = createRequire(import.meta.url)('ws') as {
  Receiver: new (options: { isServer: boolean; extensions: Record<string, PerMessageDeflate> }) => Receiver
  PerMessageDeflate: new (options: { isServer: boolean }) => PerMessageDeflate
}

export type WsEvent =
  | ({ readonly kind: 'message'; readonly opcode: 1 | 2; readonly payload: Buffer } & Deflated)
  | { readonly kind: 'control'; readonly opcode: number; readonly payload: Buffer }
  | ({ readonly kind: 'error'; readonly closeCode: number; readonly code: string } & Deflated)

interface Deflated {
  /** A block was marked as the last one of the stream. */
  readonly streamEnded: boolean
  readonly isAstray: boolean
}

/** The events that the receiver of `ws` reads from these bytes. */
export async function receiveWithWs(bytes: Buffer, from: Side, inflate: Deflate | null): Promise<WsEvent[]> {
  const events: WsEvent[] = []
  let streamEnded = false
  // Where a deflate stream ends in a fragment that is not the last, `ws` reads the rest of the message, and if that is but the
  // tail then half a block, as the beginning of another stream. Later messages of `ws` are not to be relied on then.
  let isAstray = false
  const extensions: Record<string, PerMessageDeflate> = {}
  if (inflate !== null) {
    const extension = new ws.PerMessageDeflate({ isServer: from === 'client' })
    extension.params = {
      [`${from}_max_window_bits`]: inflate.windowBits,
      ...(inflate.contextTakeover ? {} : { [`${from}_no_context_takeover`]: true }),
    }
    const { decompress } = extension
    extension.decompress = (data, fin, done) =>
      decompress.call(extension, data, fin, (error, inflated) => {
        const ended = error === null && extension._inflate === null
        streamEnded ||= ended
        isAstray ||= ended && !fin
        done(error, inflated)
      })
    extensions['permessage-deflate'] = extension
  }
  const receiver = new ws.Receiver({ isServer: from === 'client', extensions })
  receiver.on('message', (payload: Buffer, isBinary: boolean) =>
    events.push({ kind: 'message', opcode: isBinary ? 2 : 1, payload, streamEnded, isAstray }),
  )
  receiver.on('ping', (payload: Buffer) => events.push({ kind: 'control', opcode: 9, payload }))
  receiver.on('pong', (payload: Buffer) => events.push({ kind: 'control', opcode: 10, payload }))
  receiver.on('conclude', (code: number, reason: Buffer) => {
    const head = Buffer.alloc(code === 1005 ? 0 : 2)
    if (code !== 1005) head.writeUInt16BE(code)
    events.push({ kind: 'control', opcode: 8, payload: Buffer.concat([head, reason]) })
  })
  // `_write` is called past the stream, so that plain messages are read at once. It unmasks in place, so the bytes are copied.
  let isDone = false
  const { stackTraceLimit } = Error
  // Only the codes of an error are looked at, and its trace takes a tenth of all the time.
  Error.stackTraceLimit = 0
  const written = new Promise<void>((resolve) => {
    receiver._write(Buffer.from(bytes), 'binary', (error) => {
      if (error) events.push({ ...errorEvent(error), streamEnded, isAstray })
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
