import { Socket, type SocketConstructorOpts } from 'node:net'
import { InstallationError } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'

/*
 * Sockets of `src/http`. It uses these internals, which Node may change:
 *
 *   _handle           of an accepted socket, and the option `handle` of a new one: clearing away a buffer for each read was
 *                     a third of all work with bodies of 1 MB
 *   _write, _writev   replaced on the instance: 227 of 240 early answers of upstream were lost without it, none with it
 */

interface Internals {
  _handle: object | null
  _write(chunk: unknown, encoding: unknown, done: WriteDone): void
  _writev(chunks: unknown, done: WriteDone): void
}

type WriteDone = (error?: NodeJS.ErrnoException | null) => void

/** All plain sockets read into this buffer. A chunk is valid until the function that receives it returns. */
export const readBuffer = Buffer.allocUnsafeSlow(64 * 1024)

/** Bytes that do not change until a socket has sent them. Copies only the shared read buffer, which is reused. */
export function stableCopy(chunk: Buffer): Buffer {
  return chunk.buffer === readBuffer.buffer ? Buffer.from(chunk) : chunk
}

/** Up to this size, one write of a copy of all parts is cheaper than a vectored write. */
const COPIED_BYTES_MAX = 16 * 1024

/**
 * Writes a text, a chunk and another text at once. A chunk in the shared read buffer may be reused when this returns.
 * False: wait for `drain`.
 */
export function writeParts(
  socket: Socket,
  before: string,
  chunk: Buffer,
  after: string,
  onWritten?: (error?: Error | null) => void,
): boolean {
  if (before === '' && after === '') return socket.write(stableCopy(chunk), onWritten)
  if (chunk.length <= COPIED_BYTES_MAX) {
    const bytes = Buffer.allocUnsafe(before.length + chunk.length + after.length)
    if (before !== '') bytes.write(before, 'latin1')
    bytes.set(chunk, before.length)
    if (after !== '') bytes.write(after, before.length + chunk.length, 'latin1')
    return socket.write(bytes, onWritten)
  }
  const stable = stableCopy(chunk)
  socket.cork()
  if (before !== '') socket.write(before, 'latin1')
  if (after === '') socket.write(stable, onWritten)
  else {
    socket.write(stable)
    socket.write(after, 'latin1', onWritten)
  }
  socket.uncork()
  return !socket.writableNeedDrain
}

/** Closes the connection once everything was sent. Destroys it after `timeoutMs` if the peer neither reads nor closes. */
export function endWithin(timeoutMs: number, socket: Socket): void {
  const timer = setTimeout(() => socket.destroy(), timeoutMs).unref()
  socket.once('close', () => clearTimeout(timer))
  socket.end()
}

/** Moves the handle to a new socket, because an accepted socket has no `onread` option. Do not use `accepted` again. */
export function adoptSocket(accepted: Socket, onChunk: (chunk: Buffer) => void): Socket {
  const acceptedInternals = accepted as unknown as Internals
  const handle = acceptedInternals._handle
  acceptedInternals._handle = null
  accepted.destroy()
  const options = { handle, readable: true, writable: true, onread: readInto(onChunk) }
  return new Socket(options as SocketConstructorOpts)
}

/** Node's documented option `onread`: arriving bytes are read into the shared buffer. */
export function readInto(onChunk: (chunk: Buffer) => void) {
  return {
    buffer: readBuffer,
    callback(bytes: number) {
      onChunk(readBuffer.subarray(0, bytes))
      return true
    },
  }
}

/** How long a failed write waits for an answer of upstream that may be arriving. */
const FAILED_WRITE_GRACE_MS = 250

/**
 * Upstream may answer (for example 413) and close while we still send the body. The failed write would destroy the
 * socket before the received answer is read, so its callback waits until the read side has closed.
 *
 * `onReset`: the write failed because of a reset. The kernel reports it only once, so the read side gets a normal end.
 */
export function holdFailedWrites(socket: Socket, onReset: () => void): void {
  const internals = socket as unknown as Internals
  const { _write: write, _writev: writev } = internals
  const held = (done: WriteDone): WriteDone => {
    return (error) => {
      if (error === undefined || error === null || socket.destroyed) return done(error)
      if (error.code === 'ECONNRESET') onReset()
      if (error.code === 'ECONNRESET' || error.code === 'EPIPE') holdUntilClosed(socket, () => done(error))
      else done(error)
    }
  }
  internals._write = (chunk, encoding, done) => write.call(socket, chunk, encoding, held(done))
  internals._writev = (chunks, done) => writev.call(socket, chunks, held(done))
}

function holdUntilClosed(socket: Socket, release: () => void): void {
  const finish = () => {
    clearTimeout(timer)
    socket.off('close', finish)
    release()
  }
  const timer = setTimeout(finish, FAILED_WRITE_GRACE_MS)
  socket.once('close', finish)
}

/** Throws if Node has other internals: bytes would be lost. */
export function checkNodeSockets(): void {
  const socket: Partial<Internals> = new Socket() as unknown as Internals
  if (socket._handle === undefined) throw unsupportedNode('a socket has no `_handle`')
  if (typeof socket._write !== 'function' || typeof socket._writev !== 'function')
    throw unsupportedNode('sockets do not write by `_write` and `_writev`')
}

function unsupportedNode(problem: string): InstallationError {
  const advice = 'Use a version that package.json names under "engines".'
  return new InstallationError(`Tollgate cannot run on Node ${process.versions.node}: ${problem}. ${advice}`)
}

/** Receives the arriving bytes. Its methods must not throw. */
export interface RawReceiver {
  readonly data: (chunk: Buffer) => void
  drained(): void
  closed(): void
}

const KEEP_ALIVE_MS = 60_000

/** A connection after an upgrade: bytes in both directions, with back-pressure. */
export class RawConnection {
  readonly #socket: Socket
  #receiver: RawReceiver | null = null
  /** The bytes that arrived before there was a receiver. */
  #ahead = Buffer.alloc(0)
  #isDiscarding = false
  #isClosed = false

  constructor(socket: Socket) {
    this.#socket = socket
  }

  get isClosed(): boolean {
    return this.#isClosed || this.#socket.destroyed
  }

  get bytesWaiting(): number {
    return this.#socket.writableLength
  }

  /** Passes chunks to the receiver. Chunks that have already arrived are passed before this returns. */
  receive(receiver: RawReceiver): void {
    this.#receiver = receiver
    // TCP keep-alive detects a vanished peer. There is no idle timeout: a peer may be silent for any time.
    this.#socket.setKeepAlive(true, KEEP_ALIVE_MS)
    const ahead = this.#ahead
    this.#ahead = Buffer.alloc(0)
    if (ahead.length > 0) receiver.data(ahead)
    if (ahead.length >= limits.bodyBytesAheadMax) this.resume()
    if (this.#isClosed) receiver.closed()
  }

  write(bytes: Buffer): boolean {
    return this.isClosed || this.#socket.writableEnded || this.#socket.write(bytes)
  }

  cork(): void {
    this.#socket.cork()
  }

  uncork(): void {
    this.#socket.uncork()
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    if (this.#socket.isPaused()) this.#socket.resume()
  }

  /** Closes the connection once everything was sent, or after `timeoutMs`. Bytes that still arrive are discarded. */
  end(timeoutMs: number): void {
    if (this.isClosed || this.#isDiscarding) return
    this.#isDiscarding = true
    this.resume()
    endWithin(timeoutMs, this.#socket)
  }

  destroy(): void {
    this.#socket.destroy()
  }

  arrived(chunk: Buffer): void {
    if (this.#isDiscarding) return
    if (this.#receiver !== null) {
      this.#receiver.data(stableCopy(chunk))
      return
    }
    this.#ahead = Buffer.concat([this.#ahead, chunk])
    if (this.#ahead.length >= limits.bodyBytesAheadMax) this.pause()
  }

  drained(): void {
    this.#receiver?.drained()
  }

  closed(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#receiver?.closed()
  }
}
