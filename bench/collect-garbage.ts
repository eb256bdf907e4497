import { isMainThread } from 'node:worker_threads'

/** Loaded into a subject with `--import`: it clears its memory when it is asked to, so that what is left is in use. */
if (isMainThread) process.on('SIGUSR2', () => globalThis.gc?.())
