import { createAdminKey, listAdminKeys, revokeAdminKey } from './admin-keys.ts'
import { keepBatchFile, keepPriceVersion, keepSetting, probeWrite, readSetting } from './settings.ts'

/**
 * All operations but those of calls and of their keys' recognition. What looks at a few rows runs on SQLite's writing
 * thread, between batches of calls.
 */
export const BRIEF = {
  createAdminKey,
  listAdminKeys,
  revokeAdminKey,
  readSetting,
  keepSetting,
  probeWrite,
  keepPriceVersion,
  keepBatchFile,
}
