import type { KeyLookupStore } from '../keys/credential.ts'
import type { KeyStore, SessionStore } from '../keys/key-store.ts'
import type { AccountStore } from '../ledger/account.ts'
import type { DeferredStore } from '../ledger/deferred.ts'
import type { LedgerStore } from '../ledger/ledger-store.ts'
import type { RequestLogStore } from '../ledger/request-log.ts'
import type { StoreLoad } from '../ledger/store-facts.ts'
import type { OverviewStore, UsageStore } from '../ledger/usage-report.ts'
import type { WebhookStore } from '../webhooks/webhook-store.ts'

/** All ports of the store together, as an implementation offers them. Each part of the service sees only its port. */
export interface Store
  extends KeyStore,
    AccountStore,
    SessionStore,
    KeyLookupStore,
    LedgerStore,
    UsageStore,
    RequestLogStore,
    OverviewStore,
    DeferredStore,
    WebhookStore {
  /** After a crash: gives back every open hold of the process that died. Returns how many there were. */
  interruptOpenCalls(atMs: number): Promise<number>
  /** Keeps a price version for as long as there are bills made with it. */
  storePriceVersion(id: string, json: string): Promise<void>
  /** Small facts about the installation, such as which pepper its keys were made with. */
  readSetting(name: string): Promise<string | null>
  /** Stores the value if there is none yet. Returns the stored value. */
  getOrCreateSetting(name: string, value: string): Promise<string>
  /** Writes a row without meaning, to find out whether the store can write. */
  probeWrite(): Promise<void>
  readonly load: StoreLoad
  close(): Promise<void>
}
