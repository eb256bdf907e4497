import type { Clock } from '../kernel/clock.ts'
import type { Log } from '../kernel/log.ts'
import type { Nanos } from '../kernel/money.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import type { CallClosing } from '../ledger/call.ts'
import type { Outbox } from '../ledger/outbox.ts'
import type { WaitingCalls } from '../ledger/unsent-calls.ts'
import type { Store } from '../store/store.ts'
import type { AdmissionQueues } from './admission-queue.ts'
import type { Billing } from './bill.ts'
import type { Prices } from './call-plan.ts'

/** What the core of a call needs. It is created once for all calls. */
export interface Core {
  readonly clock: Clock
  readonly log: Log
  readonly store: Pick<Store, 'admit' | 'deferCall' | 'getKey' | 'lookUpKey'> & Billing['store']
  readonly queues: AdmissionQueues
  readonly waitingCalls: WaitingCalls
  readonly outbox: Outbox
  readonly prices: Prices
  readonly counts: SettlementCounts
  /** The calls that are upstream now. */
  readonly inFlight: { readonly count: number }
  /** `exact`: at most one call exceeds a cap. `settled`: calls in flight may exceed it together. */
  readonly budgetMode: 'exact' | 'settled'
  readonly unboundedNanos: Nanos
}

interface SettlementCounts {
  /** `times` null: a part of a call, which is no call itself. */
  countSettlement(
    surface: Surface,
    modelAsked: string | null,
    closing: CallClosing,
    times: { readonly overheadMs: number; readonly upstreamMs: number } | null,
  ): void
}
