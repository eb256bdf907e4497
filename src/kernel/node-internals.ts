import { EventEmitter, once } from 'node:events'
import { type AddressInfo, connect, createServer, Socket, type SocketConstructorOpts } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { type Borrowed, readBuffer } from './memory.ts'

/*
 * Everything that is used of Node and that Node does not promise, in one place:
 *
 *   _handle             of an accepted socket, and the option `handle` of a new one   adoptSocket
 *   _write, _writev     of a socket, replaced on the instance                         holdFailedWrites
 *   V8 options          set while the process runs                                    tuneHeap, leaveYoungHeapToThreads
 *
 * `checkNodeInternals` tries the first two at start, since bytes would be lost without them. The options only shape the use
 * of memory: a V8 that does not know them ignores them.
 */

interface Internals {
  _handle: object | null
  _write(chunk: unknown, encoding: unknown, done: WriteDone): void
  _writev(chunks: unknown, done: WriteDone): void
}

type WriteDone = (error?: NodeJS.ErrnoException | null) => void

/**
 * A socket that was accepted, reading into the shared buffer. Node lets only sockets that connect themselves choose
 * their buffer, so the connection is handed over to a new socket. The accepted socket is done with: Node's server
 * does not count this connection any more.
 */
export function adoptSocket(accepted: Socket, onChunk: (chunk: Borrowed) => void): Socket {
  const handed = accepted as unknown as Internals
  const handle = handed._handle
  handed._handle = null
  accepted.destroy()
  const options = { handle, readable: true, writable: true, onread: readInto(onChunk) }
  return new Socket(options as SocketConstructorOpts)
}

/** The documented option `onread`: bytes that arrive are read into the shared buffer. */
export function readInto(onChunk: (chunk: Borrowed) => void) {
  return {
    buffer: readBuffer,
    callback(bytes: number) {
      onChunk(readBuffer.subarray(0, bytes))
      return true
    },
  }
}

/** How long a failed write waits for the answer that may already be on its way. */
const FAILED_WRITE_GRACE_MS = 250

/**
 * Upstream may answer (413, say) and close while we still send the body. The failed write would destroy the socket
 * before the answer that it has already received is read: 227 of 240 such answers were lost. Here a failed write's
 * callback waits until the read side has closed: 0 of 240 answers were lost.
 *
 * `onReset` is told when such a write has met a reset. The kernel tells of a reset once, so the read side will then
 * see an ordinary end where there was none.
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

/**
 * V8 is told to collect old objects when they have become twice as many. By itself it waits for a tenth more at times
 * and for four times as many at others, and malloc keeps their memory: with 2,000 requests a second 40 MB, in one
 * minute or another of the first ten. To collect at half as many again would take a tenth more time with 256 callers;
 * this takes none. To be called when the start is over, because code that Node brings compiled is compiled anew under
 * another option: the start would take 85 ms more, and threads that start later take 50 more.
 */
export function tuneHeap(): void {
  setFlagsFromString('--heap-growing-percent=100')
}

/**
 * The process's option for young objects has shaped the heap of the main thread long ago. Left standing, the option would take
 * the place of a new thread's limit: with `npm start` the store's young heap grew from 8 to 33 MB after minutes of work.
 */
export function leaveYoungHeapToThreads(): void {
  setFlagsFromString('--max-semi-space-size=0')
}

/** The gateway cannot serve on this version of Node. */
export class UnsupportedNode extends Error {
  constructor(problem: string) {
    super(
      `Node ${process.versions.node} cannot be served on: ${problem}. Use a version that package.json names under "engines".`,
    )
  }
}

const CHECK_TIMEOUT_MS = 5_000

/** Tries on a connection of its own whether this Node has the internals used here, and throws if not. Takes some 3 ms. */
export async function checkNodeInternals(): Promise<void> {
  const server = createServer().listen(0, '127.0.0.1')
  const open: Socket[] = []
  try {
    await soon(once(server, 'listening'), 'a server does not listen')
    const { port } = server.address() as AddressInfo
    const client = connect({ host: '127.0.0.1', port })
    open.push(client)
    const [accepted] = (await soon(once(server, 'connection'), 'a server accepts nothing')) as [Socket]
    open.push(accepted)
    const { socket, arrived } = adoptForCheck(accepted)
    open.push(socket)
    const written = watchWrites(client)
    client.write('a')
    await soon(arrived('a'), 'an accepted connection cannot be handed to another socket')
    client.cork()
    client.write('b')
    client.write('c')
    client.uncork()
    await soon(arrived('abc'), 'what is written together does not arrive')
    if (!written.one || !written.several)
      throw new UnsupportedNode('sockets do not write by `_write` and `_writev`')
    socket.write('d')
    const [reply] = (await soon(
      once(client, 'data'),
      'a socket that took a connection over cannot write',
    )) as [Buffer]
    if (String(reply) !== 'd')
      throw new UnsupportedNode('a socket that took a connection over writes something else')
  } finally {
    for (const socket of open) socket.destroy()
    server.close()
  }
}

function adoptForCheck(accepted: Socket) {
  const { _handle: handle } = accepted as unknown as Internals
  if (typeof handle !== 'object' || handle === null)
    throw new UnsupportedNode('an accepted socket has no `_handle`')
  let text = ''
  const come = new EventEmitter()
  const socket = adoptSocket(accepted, (chunk) => {
    text += chunk.toString('latin1')
    come.emit('chunk')
  })
  const arrived = async (wanted: string) => {
    while (text !== wanted) await once(come, 'chunk')
  }
  return { socket, arrived }
}

/** Notes whether the stream above a socket calls the `_write` and `_writev` of the instance. */
function watchWrites(socket: Socket): { one: boolean; several: boolean } {
  const written = { one: false, several: false }
  const internals = socket as unknown as Internals
  holdFailedWrites(socket, () => {})
  const { _write: write, _writev: writev } = internals
  internals._write = (chunk, encoding, done) => {
    written.one = true
    write(chunk, encoding, done)
  }
  internals._writev = (chunks, done) => {
    written.several = true
    writev(chunks, done)
  }
  return written
}

async function soon<T>(event: Promise<T>, problem: string): Promise<T> {
  const abort = new AbortController()
  const late = sleep(CHECK_TIMEOUT_MS, null, { signal: abort.signal }).then(() => {
    throw new UnsupportedNode(problem)
  })
  late.catch(() => {})
  try {
    return await Promise.race([event, late])
  } finally {
    abort.abort()
  }
}
