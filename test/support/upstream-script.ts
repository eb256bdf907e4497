import type { Buffer } from 'node:buffer'
import type net from 'node:net'
import { nextTurn, withDeadline } from './deadline.ts'
import type { Bytes, Framing } from './wire-message.ts'
import { toBuffer } from './wire-message.ts'

export type Step = { send: Bytes } | { pause: number | Promise<unknown> } | { reset: true } | { close: true }

/** `early` steps run once the head has arrived, while the rest is read or left in the kernel. */
export type Script = readonly Step[] | { early: readonly Step[]; reading?: boolean }

/** A script, or a function that creates one when the head of its request has arrived. */
export type ScriptChoice = Script | ((request: ReceivedRequest) => Script)

export type ReceivedRequest = {
  number: number
  connection: number
  requestLine: string
  method: string
  target: string
  headerLines: string[]
  framing: Framing
  /** `body`, `chunks`, `trailerLines` and `complete` are set when the request is complete or its connection has ended. */
  body: Buffer
  chunks: number[]
  trailerLines: string[]
  complete: boolean
  /** The peer left before the script had finished. */
  peerClosedEarly: boolean
  /** Bytes of the script that the kernel has accepted. */
  sentBytes: number
  whenComplete: Promise<void>
  /** The peer's side of the connection has ended, early or not. */
  whenPeerClosed: Promise<void>
  /** The script is over, for whatever reason. */
  whenAnswered: Promise<void>
}

export type UpstreamConnection = { socket: net.Socket; number: number; ended: PromiseWithResolvers<void> }

const writeBytesMax = 64 * 1024

export const isEarly = (script: Script): script is { early: readonly Step[]; reading?: boolean } =>
  'early' in script

export async function runScript(
  steps: readonly Step[],
  request: ReceivedRequest,
  connection: UpstreamConnection,
): Promise<void> {
  let gone = false
  connection.ended.promise.then(() => {
    gone = true
  })
  for (const step of steps) {
    if (gone) break
    await runStep(step, request, connection)
  }
  const last = steps.at(-1)
  const endedByUs = last !== undefined && ('close' in last || 'reset' in last)
  request.peerClosedEarly = gone && !endedByUs
}

async function runStep(step: Step, request: ReceivedRequest, connection: UpstreamConnection): Promise<void> {
  const { socket, ended } = connection
  if ('send' in step) return send(toBuffer(step.send), request, connection)
  if ('pause' in step) {
    const over = typeof step.pause === 'number' ? delay(step.pause) : step.pause
    const describe = () => `the script of "${request.requestLine}" is still pausing`
    await withDeadline(Promise.race([over, ended.promise]), describe)
  } else if ('reset' in step) {
    socket.resetAndDestroy()
  } else {
    // Like a server that calls close(): written bytes are delivered, and unread bytes cause a reset.
    socket.destroySoon()
  }
}

/** Sends in pieces, awaiting each, so that `sentBytes` shows how far the peer's flow control allowed. */
async function send(bytes: Buffer, request: ReceivedRequest, connection: UpstreamConnection): Promise<void> {
  const gone = connection.ended.promise.then(() => false)
  for (let at = 0; at < bytes.length; at += writeBytesMax) {
    const piece = bytes.subarray(at, at + writeBytesMax)
    const written = new Promise<boolean>((resolve) => {
      connection.socket.write(piece, (error) => resolve(!error))
    })
    if (!(await Promise.race([written, gone]))) return
    request.sentBytes += piece.length
  }
  await nextTurn()
}

const delay = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
