import { parentPort, workerData } from 'node:worker_threads'
import { judgePush, type Push } from './judge-push.ts'

/** The thread of `judgePushInThread`: it judges one push, and ends. */
parentPort?.postMessage(judgePush(workerData as Push))
