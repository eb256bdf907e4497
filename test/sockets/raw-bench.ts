import { createHash } from 'node:crypto'
import net from 'node:net'
import tls from 'node:tls'
import { localPair } from '../support/certificates.ts'
import { withDeadline } from '../support/deadline.ts'
import { type GatewayOptions, startGateway } from '../support/gateway.ts'
import { message } from '../support/wire-bytes.ts'
import { settledTurns } from './turns-bench.ts'
import { Wire } from './wire.ts'

export const PROVIDER_KEY = 'sk-provider'
const NONCE = 'dGhlIHNhbXBsZSBub25jZQ=='
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

export type RawBench = Awaited<ReturnType<typeof startRawBench>>
export type RawSocket = Awaited<ReturnType<RawBench['open']>>

/** Every byte is under the test's control. Clients speak TLS where those of `startPair` do. */
export async function startRawBench(options: GatewayOptions = {}) {
  const wires: Wire[] = []
  const waiting: ((wire: Wire) => void)[] = []
  const unclaimed: Wire[] = []
  const server = net.createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
    const wire = new Wire(socket)
    wires.push(wire)
    const claim = waiting.shift()
    if (claim === undefined) unclaimed.push(wire)
    else claim(wire)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as net.AddressInfo
  const upstreamUrl = `http://127.0.0.1:${port}`
  const secure = process.env['TEST_STORE'] === 'postgres' || process.env['TEST_TLS'] === '1'
  const chatUrl = `${upstreamUrl}/v1`
  const gateway = await startGateway({ chatUrl, chatKey: PROVIDER_KEY, secure, ...options })

  let stopped: Promise<void> | null = null
  const stop = () => (stopped ??= gateway.close())

  const accepted = async (): Promise<Wire> => {
    const next = unclaimed.shift()
    if (next !== undefined) return next
    const { promise, resolve } = Promise.withResolvers<Wire>()
    waiting.push(resolve)
    return await withDeadline(promise, () => 'nobody has connected to upstream')
  }
  const connect = async (): Promise<Wire> => {
    const { host, port } = gateway
    const plain = net.connect({ host, port, allowHalfOpen: true })
    const socket = gateway.secure ? tls.connect({ socket: plain, host, ca: localPair.cert }) : plain
    const ready = gateway.secure ? 'secureConnect' : 'connect'
    await new Promise<void>((resolve, reject) => socket.once(ready, resolve).once('error', reject))
    const wire = new Wire(socket, plain)
    wires.push(wire)
    return wire
  }
  return {
    gateway,
    upstreamUrl,
    accepted,
    connect,
    stop,
    turns: (socketId: string, count: number) => settledTurns(gateway, socketId, count),
    /** Both ends of a socket that upstream has accepted. */
    async open({ key = gateway.apiKey, target }: { key?: string; target?: string } = {}) {
      const client = await connect()
      await client.send(handshake([`Authorization: Bearer ${key}`], target))
      const upstream = await accepted()
      await upstream.head()
      await upstream.send(agreement())
      const id = (await client.head()).find((line) => /^x-svc-request-id: /i.test(line)) ?? ''
      return { id: id.slice('x-svc-request-id: '.length), client, upstream }
    },
    async [Symbol.asyncDispose]() {
      for (const { socket } of wires) socket.destroy()
      await stop()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

export function handshake(lines: readonly string[], target = '/v1/responses'): Buffer {
  return message(`GET ${target} HTTP/1.1`, [
    'Host: gateway.test',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${NONCE}`,
    ...lines,
  ])
}

export const ACCEPT_LINE = `Sec-WebSocket-Accept: ${createHash('sha1')
  .update(NONCE + GUID)
  .digest('base64')}`

export function agreement(lines: readonly string[] = []): Buffer {
  return message('HTTP/1.1 101 Switching Protocols', [
    'Upgrade: websocket',
    'Connection: Upgrade',
    ACCEPT_LINE,
    ...lines,
  ])
}

/** Splits bytes into frames by their headers alone. An incomplete frame comes last. */
export function splitFrames(bytes: Buffer): Buffer[] {
  const frames: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const end = Math.min(bytes.length, at + (frameBytes(bytes.subarray(at)) ?? bytes.length))
    frames.push(bytes.subarray(at, end))
    at = end
  }
  return frames
}

function frameBytes(bytes: Buffer): number | null {
  if (bytes.length < 2) return null
  const second = bytes.readUInt8(1)
  const short = second & 0x7f
  const lengthEnd = short < 126 ? 2 : short === 126 ? 4 : 10
  if (bytes.length < lengthEnd) return null
  const payload =
    short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2))
  return lengthEnd + (second >= 0x80 ? 4 : 0) + payload
}

/** The payload of a server's frame, which is unmasked. */
export function payloadOf(frame: Buffer): Buffer {
  const short = frame.readUInt8(1) & 0x7f
  return frame.subarray(short < 126 ? 2 : short === 126 ? 4 : 10)
}

export const opcodeOf = (frame: Buffer): number => frame.readUInt8(0) & 0x0f
