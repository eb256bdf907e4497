import type { IncomingHttpHeaders } from 'node:http'
import type { BatchStore } from './batch-store.ts'
import type { Behaviours } from './behaviours.ts'
import type { FileStore } from './file-store.ts'
import type { Identity } from './identity.ts'
import type { PromptCache } from './prompt-cache.ts'
import type { Reply } from './reply.ts'
import type { ResponseStore } from './responses/response-store.ts'
import type { WorkClock } from './work-clock.ts'

/** The stores and caches that the simulator keeps between requests, all of them bounded. */
export interface Memory {
  readonly promptCache: PromptCache
  readonly files: { readonly messages: FileStore; readonly chat: FileStore }
  readonly responses: ResponseStore
  readonly batches: { readonly messages: BatchStore; readonly chat: BatchStore }
}

/** A request whose body has been read and whose key was accepted. */
export interface Call {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly contentType: string
  readonly body: Buffer
  /** The segments that the route's pattern captured, for example a file id. */
  readonly params: readonly string[]
  readonly behaviours: Behaviours
  readonly identity: Identity
  readonly memory: Memory
  readonly clock: WorkClock
}

export type Handler = (call: Call) => Reply
