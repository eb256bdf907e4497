import { isMainThread } from 'node:worker_threads'

/** Loaded into a subject with `--import`: collects garbage on a signal, so that all memory that is left is in use. */
if (isMainThread) process.on('SIGUSR2', () => globalThis.gc?.())
