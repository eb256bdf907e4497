import { bodyLimitConformance } from './body-limit.ts'
import { ceilingConformance } from './ceilings.ts'
import { creditBackConformance } from './credit-back.ts'
import { deferredConformance } from './deferred.ts'
import { deviceConformance } from './devices.ts'
import type { OpenStoreUnderTest } from './fixtures.ts'
import { onceConformance } from './idempotency.ts'
import { keyListConformance } from './key-list.ts'
import { keyConformance } from './keys.ts'
import { ledgerConformance } from './ledger.ts'
import { peopleConformance } from './people.ts'
import { personCheckConformance } from './person-checks.ts'
import { personKeyConformance } from './person-keys.ts'
import { refusedCallConformance } from './refused-calls.ts'
import { requestLogConformance } from './request-log.ts'
import { sessionConformance } from './sessions.ts'
import { socketConformance } from './sockets.ts'
import { usageConformance } from './usage.ts'

/** The conformance tests of every store, without those of events and webhooks, which run in parallel. */
export function storeConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  ledgerConformance(storeName, openStore)
  ceilingConformance(storeName, openStore)
  deferredConformance(storeName, openStore)
  keyConformance(storeName, openStore)
  keyListConformance(storeName, openStore)
  onceConformance(storeName, openStore)
  peopleConformance(storeName, openStore)
  personKeyConformance(storeName, openStore)
  personCheckConformance(storeName, openStore)
  deviceConformance(storeName, openStore)
  requestLogConformance(storeName, openStore)
  sessionConformance(storeName, openStore)
  socketConformance(storeName, openStore)
  usageConformance(storeName, openStore)
  creditBackConformance(storeName, openStore)
  refusedCallConformance(storeName, openStore)
  bodyLimitConformance(storeName, openStore)
}
