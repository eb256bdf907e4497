import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import type { Config } from './config.ts'
import type { Installation } from './installation.ts'
import type { Clock } from './kernel/clock.ts'
import type { IdSource } from './kernel/ids.ts'
import { limits } from './kernel/limits.ts'
import type { Log } from './kernel/log.ts'
import { shownDatabase } from './kernel/secret.ts'
import { startThread } from './kernel/start-thread.ts'
import type { AuditMessage, AuditResult, AuditRunStore, BooksToAudit } from './ledger/audit-runs.ts'
import type { ServingNode } from './management/route.ts'
import { shippedBook } from './pricing/compile-version.ts'
import type { PriceBook } from './pricing/price-book.ts'
import { shownConfiguration } from './show-config.ts'

type Figures = 'callsInFlight' | 'callsWaiting' | 'settlementsWaiting' | 'isReady' | 'canWrite'

export interface NodeParts extends Pick<ServingNode, Figures> {
  readonly nextUlid: IdSource
  readonly log: Log
  /** The prices in force. */
  book(): PriceBook
}

/** This process as its dashboard shows it, and the audits that are begun from the dashboard. */
export function createServingNode(
  { store, clock, nodeName }: Pick<Installation, 'store' | 'clock' | 'nodeName'>,
  config: Config,
  { nextUlid, log, book, ...figures }: NodeParts,
): { readonly node: ServingNode; readonly audit: BackgroundAudit } {
  const audit = new BackgroundAudit({
    ...{ store, clock, nextUlid, log, node: nodeName },
    books: { file: join(config.dataDir, 'tollgate.db'), databaseUrl: config.databaseUrl?.reveal() ?? null },
  })
  let shipped: PriceBook | null = config.prices === null ? book() : null
  const node: ServingNode = {
    ...figures,
    name: nodeName,
    startedAtMs: clock.nowMs(),
    booksPlace: config.databaseUrl === null ? config.dataDir : shownDatabase(config.databaseUrl),
    configuration: shownConfiguration(config),
    prices() {
      shipped ??= shippedBook()
      return { book: book(), shipped, overlayFile: config.prices?.file ?? null }
    },
    startAudit: () => audit.start(),
  }
  return { node, audit }
}

interface BackgroundAuditParts {
  readonly store: AuditRunStore
  readonly clock: Clock
  readonly nextUlid: IdSource
  readonly log: Log
  /** The name of this node. */
  readonly node: string
  readonly books: BooksToAudit
}

/** Audits that are begun over the API, in `audit-thread.ts`. The store has their progress, so that every node can tell it. */
export class BackgroundAudit {
  readonly #parts: BackgroundAuditParts
  #running: { readonly thread: Worker; readonly ended: Promise<void> } | null = null

  constructor(parts: BackgroundAuditParts) {
    this.#parts = parts
  }

  /** False: an audit is running, here or on another node. */
  async start(): Promise<boolean> {
    const { store, clock, nextUlid, node, books } = this.#parts
    const id = `aud_${nextUlid()}`
    if (!(await store.beginAudit({ id, node }, clock.nowMs(), limits.auditSilentMs))) return false
    const thread = startThread(import.meta.url, 'audit-thread', books)
    this.#running = { thread, ended: this.#follow(id, thread) }
    return true
  }

  /** Ends an audit that is running, which has failed then. */
  async stop(): Promise<void> {
    await this.#running?.thread.terminate()
    await this.#running?.ended
  }

  async #follow(id: string, thread: Worker): Promise<void> {
    const { store, clock, log } = this.#parts
    let progress = { done: 0, total: 0 }
    const heartbeat = setInterval(() => {
      // If the store cannot take this heartbeat, the next one tells the progress.
      store.advanceAudit(id, progress.done, progress.total, clock.nowMs()).catch(() => {})
    }, limits.auditBeatMs)
    const result = await new Promise<AuditResult>((resolve) => {
      thread.on('message', (message: AuditMessage) => {
        if (message.kind === 'report') resolve(message.report)
        else progress = message
      })
      thread.on('error', (error) => resolve({ error: error.message }))
      thread.on('exit', () => resolve({ error: 'the gateway was stopped' }))
    })
    clearInterval(heartbeat)
    this.#running = null
    const state = 'error' in result ? 'failed' : 'done'
    try {
      await store.advanceAudit(id, progress.total, progress.total, clock.nowMs())
      await store.endAudit(id, state, JSON.stringify(result), clock.nowMs())
    } catch (error) {
      log.warn({ audit: id, cause: (error as Error).message }, 'the result of an audit could not be kept')
    }
    if (!('error' in result) && result.difference !== null) {
      log.error({ audit: id, ...result.difference }, 'an audit has found a difference')
    }
  }
}
