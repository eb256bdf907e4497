import { alsoRedacting, type Redact, type Secret } from '../kernel/secret.ts'
import type { OwnUpstream } from '../kernel/vocabulary.ts'
import { credentialScope } from '../ledger/account.ts'
import { type Admission, requestsOf, type Settled } from '../ledger/call.ts'
import type { Deferral } from '../ledger/deferred.ts'
import type { Ask } from './ask.ts'
import { type Bill, billCall, billOutputSide, LOST, NOTHING_BILLED, withoutSecrets } from './bill.ts'
import type { Core } from './core.ts'
import { type Evidence, NOTHING_TRANSFERRED, type Transfer } from './evidence.ts'

/** What admission said about a call. It stays true until the call has ended. */
export interface Terms {
  readonly keyId: string
  readonly budgetId: string
  readonly accountId: string
  readonly logRequests: boolean
  readonly balanceNanos: bigint
  /** Whether other accounts exist, which may share the installation's upstream credential. */
  readonly hasOthers: boolean
  /** The account's discount in billionths of the list cost; null if the installation's discount applies. */
  readonly discountBillionths: number | null
  /** The account's own upstream; null if the installation's serves it. */
  readonly upstream: OwnUpstream | null
}

/** What a carrier has seen of a call so far. */
export interface SoFar {
  readonly evidence: Evidence
  readonly transfer: Transfer
}

/** The object that a call created upstream, which states the cost later. */
export type CreatedObject = Pick<Deferral, 'kind' | 'objectId' | 'status' | 'upstreamRequestId'>

/**
 * The maximum cost of a call, reserved until the call ends. Only `admit` makes one, and it is on disk by then. It closes
 * once: by a bill, by a release, or by the object that states the cost.
 */
export class Hold implements AsyncDisposable {
  readonly terms: Terms
  readonly #core: Core
  /** `recorded`: the poller closes the hold if this process ends before. `deferred`: it belongs to the object. */
  #state: 'open' | 'recorded' | 'deferred' | 'closed' = 'open'
  #soFar: (() => SoFar | Promise<SoFar>) | null = null
  #ask: Ask
  #key: Secret | null = null
  #redact: Redact

  constructor(ask: Ask, admission: Admission & { readonly kind: 'admitted' }, core: Core) {
    const { keyId, budgetId, accountId, logRequests, balanceNanos, hasOthers } = admission
    const { discountBillionths = null, upstream = null } = admission.terms ?? {}
    const ofKey = { keyId, budgetId, accountId, logRequests, balanceNanos, hasOthers }
    this.#ask = ask
    this.terms = { ...ofKey, discountBillionths, upstream }
    this.#core = core
    this.#redact = ask.caller.redact
  }

  get ask(): Ask {
    return this.#ask
  }

  /** Removes the credentials that this call used from what is recorded. */
  get redact(): Redact {
    return this.#redact
  }

  get scope(): string {
    return credentialScope(this.terms)
  }

  get isDeferred(): boolean {
    return this.#state === 'deferred'
  }

  /** The account's own key, if it served the call. */
  get redactedKey(): Secret | null {
    return this.#key
  }

  uses(key: Secret | null): void {
    this.#key = key
    this.#redact = alsoRedacting(this.ask.caller.redact, key)
  }

  /** From now on upstream may work, so that the call is billed by what was seen, even after a defect. */
  sending(soFar: () => SoFar | Promise<SoFar>): void {
    this.#soFar = soFar
  }

  /** Null if the database did not accept the bill in time: the outbox sends it again until it does. */
  async settle(bill: Bill, transfer: Transfer): Promise<Settled | null> {
    const { ask, terms } = this
    const { outbox, queues, counts, clock } = this.#core
    // A recorded object may have been settled and counted before its stream ended.
    const isRecorded = this.#state === 'recorded'
    const { streamed, bytesIn, bytesOut } = transfer
    const closing = {
      ...withoutSecrets(bill, this.#redact),
      streamed,
      bytesIn,
      bytesOut,
      requestId: ask.requestId,
      owner: { accountId: terms.accountId, budgetId: terms.budgetId },
      atMs: clock.nowMs(),
      upstreamMs: Math.round(transfer.upstreamMs),
      overheadMs: Math.round(transfer.overheadMs),
    }
    this.#state = 'closed'
    return await outbox.settle(closing, ({ applied }) => {
      queues.settled(terms.budgetId, terms.accountId)
      // The turns of a metered socket are counted, not its handshake.
      if (requestsOf(ask) === 0 || (isRecorded && !applied)) return
      counts.countSettlement(ask.surface, ask.profile.model, closing, transfer)
    })
  }

  /** Nothing was consumed. */
  async release(): Promise<void> {
    await this.settle(NOTHING_BILLED, NOTHING_TRANSFERRED)
  }

  /** Records the object that states the cost. `paid_by_other`: an earlier call pays for the same object. */
  async record(object: CreatedObject, { upstreamMs, overheadMs, ...transfer }: Transfer, dueInMs: number) {
    const { ask, scope } = this
    const { store, clock } = this.#core
    const upstreamId = object.upstreamRequestId
    const recorded = await store.deferCall({
      ...transfer,
      ...object,
      requestId: ask.requestId,
      surface: ask.surface,
      scope,
      dueInMs,
      atMs: clock.nowMs(),
      upstreamMs: Math.round(upstreamMs),
      overheadMs: Math.round(overheadMs),
      upstreamRequestId: upstreamId === null ? null : this.#redact(upstreamId),
    })
    if (recorded === 'deferred' && this.#state === 'open') this.#state = 'recorded'
    return recorded
  }

  /** The cost comes later: the hold now belongs to the object. */
  defer(): void {
    this.#state = 'deferred'
  }

  /** Sockets remember turns that have ended, but not their requests. */
  forgetBody(): void {
    this.#ask = { ...this.#ask, bytes: { ...this.#ask.bytes, pieces: [] } }
  }

  /** After a defect: releases what was not sent, and bills what was sent by what was seen of it. Never rejects. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#state !== 'open') return
    try {
      if (this.#soFar === null) await this.release()
      else await this.#settleSoFar(this.#soFar)
    } catch (error) {
      const about = { request: this.ask.requestId, cause: (error as Error).message }
      this.#core.log.error(about, 'the reservation of a call could not be closed')
    }
  }

  async #settleSoFar(read: () => SoFar | Promise<SoFar>): Promise<void> {
    let transfer = NOTHING_TRANSFERRED
    let bill = LOST
    try {
      const soFar = await read()
      transfer = soFar.transfer
      bill = await billCall(this, soFar.evidence, this.#core)
    } catch {
      bill = billAtWorst(this)
    }
    await this.settle(bill, transfer)
  }
}

/** Without prices the cost is lost, but the hold closes. */
function billAtWorst(hold: Hold): Bill {
  try {
    return billOutputSide(hold)
  } catch {
    return LOST
  }
}
