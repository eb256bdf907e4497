import { join } from 'node:path'
import { BackgroundAudit } from './background-audit.ts'
import type { Config } from './config.ts'
import type { Installation } from './installation.ts'
import type { IdSource } from './kernel/ids.ts'
import type { Log } from './kernel/log.ts'
import type { ServingNode } from './management/serving-node.ts'
import { shippedBook } from './pricing/compile-version.ts'
import type { PriceBook } from './pricing/price-book.ts'
import { shownConfiguration } from './show-config.ts'
import { shownDatabase } from './store/postgres/shown-database.ts'

type Figures = 'callsInFlight' | 'callsWaiting' | 'settlementsWaiting' | 'isReady' | 'canWrite'

export interface NodeParts extends Pick<ServingNode, Figures> {
  readonly nextUlid: IdSource
  readonly log: Log
  /** The prices in force. */
  book(): PriceBook
}

/** This process as its dashboard shows it, and the audits that are begun there. */
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
