import { Worker } from 'node:worker_threads'
import { limits } from '../../src/kernel/limits.ts'

/** Loaded first into a gateway: what is to be counted never reaches the thread that counts, and is waited for without end. */
const post = Worker.prototype.postMessage
Worker.prototype.postMessage = function (message: { kind?: unknown }, ...more) {
  if (message.kind !== 'texts' && message.kind !== 'body') return post.call(this, message, ...more)
  process.stderr.write('a count waits\n')
}

const wait = globalThis.setTimeout
const patient = (run: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) =>
  wait(run, ms === limits.tokenCountMs ? 2 ** 30 : ms, ...args)
globalThis.setTimeout = Object.assign(patient, wait) as typeof setTimeout
