import type { KeyStore } from '../keys/key-store.ts'
import type { AdmissionStore } from '../ledger/admission.ts'

/** All ports together: what an implementation of the store offers. Each part of the service sees only its port. */
export interface Store extends KeyStore, AdmissionStore {
  /** Small facts about the installation, such as which pepper its keys were made with. */
  readSetting(name: string): Promise<string | null>
  writeSetting(name: string, value: string): Promise<void>
  close(): Promise<void>
}
