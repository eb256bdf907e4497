import {
  createAccount,
  findAccountOf,
  getAccount,
  hasAccount,
  hasOwnUpstreams,
  listAccounts,
  setAccountStatus,
  updateAccount,
} from './accounts.ts'
import {
  createAdminKey,
  dropBootstrapKeys,
  hasOperatorKey,
  listAdminKeys,
  revokeAdminKey,
} from './admin-keys.ts'
import { deleteBodies, getBodies, storeBodies, trimBodies } from './bodies.ts'
import { addCredit, creditBack, getBalance, listCredits, sumHeld } from './credits.ts'
import {
  claimDeferred,
  claimOne,
  countBatch,
  countDeferred,
  deferCall,
  findDeferred,
  forgetDeferred,
  hurryDeferred,
  listDeletes,
  listOpenChildren,
  mayBeResults,
  openChildren,
  postponeDeferred,
} from './deferred.ts'
import { pruneEvents, sweepEvents } from './event-sweep.ts'
import { listEvents, setBalanceLow, setBudgetThresholds } from './events.ts'
import { lookUpKey, mayCall } from './key-lookup.ts'
import { createKey, getKey, listKeys, readKeyNames, revokeKey, rotateKey, updateKey } from './keys.ts'
import { readOverview } from './overview.ts'
import { deleteRefused, getCall, listCalls, storeRefused } from './request-log.ts'
import { endSession, findSession, openSession } from './sessions.ts'
import {
  findBatchFile,
  getOrCreateSetting,
  probeWrite,
  readPriceVersion,
  readSetting,
  storeBatchFile,
  storePriceVersion,
} from './settings.ts'
import { readUsage } from './usage.ts'
import {
  claimDeliveries,
  countWaiting,
  listDeliveries,
  queueTest,
  recordAttempt,
  redeliver,
  releaseDeliveries,
} from './webhook-deliveries.ts'
import {
  createWebhook,
  deleteWebhook,
  getWebhook,
  listWebhooks,
  rotateWebhookSecret,
  updateWebhook,
} from './webhooks.ts'

/**
 * All operations but admission and settlement, by where they run. Brief operations read a few rows: SQLite's writing thread
 * runs them between batches of calls.
 */
export const BRIEF = {
  lookUpKey,
  mayCall,
  hasAccount,
  hasOwnUpstreams,
  findAccountOf,
  createAccount,
  getAccount,
  updateAccount,
  setAccountStatus,
  getCall,
  createKey,
  getKey,
  updateKey,
  revokeKey,
  rotateKey,
  createAdminKey,
  dropBootstrapKeys,
  hasOperatorKey,
  listAdminKeys,
  revokeAdminKey,
  openSession,
  findSession,
  endSession,
  getBalance,
  sumHeld,
  addCredit,
  creditBack,
  findBatchFile,
  storeBatchFile,
  storePriceVersion,
  readPriceVersion,
  readSetting,
  getOrCreateSetting,
  probeWrite,
  createWebhook,
  getWebhook,
  listWebhooks,
  updateWebhook,
  deleteWebhook,
  rotateWebhookSecret,
  redeliver,
  queueTest,
  setBalanceLow,
  setBudgetThresholds,
  sweepEvents,
  pruneEvents,
  claimDeliveries,
  releaseDeliveries,
  recordAttempt,
  deferCall,
  findDeferred,
  claimDeferred,
  claimOne,
  postponeDeferred,
  forgetDeferred,
  hurryDeferred,
  mayBeResults,
  openChildren,
  listOpenChildren,
  countBatch,
}

/** Operations on refused calls are brief on SQLite; on PostgreSQL they must not take the connections of other operations. */
export const REFUSED = { storeRefused, deleteRefused }

/** Operations that may look at many rows: no admission waits for them. */
export const READS = {
  ...{ listAccounts, listKeys, readKeyNames, listCalls, listCredits, readUsage, readOverview },
  ...{ listDeliveries, listEvents, listDeletes, countWaiting, countDeferred },
}

/** Operations on bodies, for which SQLite has a file and a thread of its own. */
export const BODIES = { storeBodies, getBodies, deleteBodies, trimBodies }
