import { type Denial, type Refusal, refuse } from '../kernel/errors.ts'
import { requestInstantMs } from '../kernel/ids.ts'
import { limits } from '../kernel/limits.ts'
import type { Nanos } from '../kernel/money.ts'
import { redactForeign } from '../kernel/secret.ts'
import { refuseKey } from '../keys/credential.ts'
import { type Admission, type CallOpening, type CallRefusal, unsentCall } from '../ledger/call.ts'
import { refuseSpent } from '../ledger/decide-admission.ts'
import { writeRating } from '../pricing/rating-context.ts'
import { objectIdIn } from '../providers/deferred-kinds.ts'
import type { Blocked, QueueEntry } from './admission-queue.ts'
import { type Ask, type Asked, describeAsked, recordable } from './ask.ts'
import type { Core } from './core.ts'
import { Hold } from './hold.ts'
import { explainBlocked, explainRefusal, explainSpent, SUSPENDED } from './refusals.ts'

const SETTLEMENTS_WAITING_MAX = 20_000

export type AdmitResult = { readonly kind: 'admitted'; readonly hold: Hold } | NotAdmitted

export type NotAdmitted = ({ readonly kind: 'refused' } & Denial) | { readonly kind: 'client_left' }

type AdmissionAnswer =
  | Admission
  | { readonly kind: 'client_left' }
  | { readonly kind: 'overloaded'; readonly refusal: Refusal }

/**
 * For answers that depend on the key outside admission. Refuses a key that is unusable, or whose account is suspended;
 * `isPaid`: also a key without budget or credit.
 */
export async function findCaller(
  digest: Uint8Array,
  isPaid: boolean,
  { store, clock }: Pick<Core, 'clock'> & { readonly store: Pick<Core['store'], 'lookUpKey'> },
) {
  const caller = await store.lookUpKey(digest, clock.nowMs())
  if (caller.kind !== 'api_key') {
    const refusal = refuseKey(caller.kind === 'refused' ? caller.reason : 'admin_key')
    return { caller: null, refusal, balanceNanos: null }
  }
  const { funds, isSuspended } = caller
  const spent = isPaid ? refuseSpent(funds) : null
  const refusal = isSuspended ? SUSPENDED : spent && explainSpent(spent)
  return { caller, refusal, balanceNanos: funds.balanceNanos }
}

/** Decides whether the call may go upstream. If so, its hold is on disk when this returns. */
export async function admit(ask: Ask, core: Core): Promise<AdmitResult> {
  const { caller, profile } = ask
  // If the client left while its body was being read, its close event has already fired.
  if (caller.presence.isOver) return CLIENT_LEFT
  const entry = core.queues.enter(caller.digest)
  const overload = refuseOverload(core)
  if (overload !== null) return refused(overload)
  // If calls of this key are already waiting, this one queues behind them.
  const blocked = profile.hold.kind === 'none' ? null : entry.lastBlocked
  const first = blocked ?? (await tryAdmit(ask, FIRST_ATTEMPT, core))
  const answer = first.kind === 'blocked' ? await waitInQueue(ask, entry, first, core) : first
  if (answer.kind === 'admitted') return { kind: 'admitted', hold: new Hold(ask, answer, core) }
  return await explainAnswer(ask, answer, core)
}

/** Admits a call that upstream has already begun. No limit refuses it, and it never waits. Null: it cannot be billed. */
export async function admitBegun(ask: Ask, core: Core): Promise<Hold | null> {
  const answer = await tryAdmit(ask, { ...FIRST_ATTEMPT, hasBegun: true }, core)
  return answer.kind === 'admitted' ? new Hold(ask, answer, core) : null
}

/** Checks a call that takes over a hold or needs none. Never waits, and writes no row. */
export async function checkAsk(
  ask: Ask,
  core: Core,
): Promise<{ readonly kind: 'permitted'; readonly discountBillionths: number | null } | NotAdmitted> {
  const answer = await tryAdmit(ask, { ...FIRST_ATTEMPT, isCheckOnly: true }, core)
  if (answer.kind !== 'admitted') return await explainAnswer(ask, answer, core)
  return { kind: 'permitted', discountBillionths: answer.terms?.discountBillionths ?? null }
}

async function explainAnswer(
  ask: Ask,
  answer: Exclude<AdmissionAnswer, { kind: 'admitted' }>,
  core: Core,
): Promise<NotAdmitted> {
  switch (answer.kind) {
    case 'client_left':
      return answer
    case 'overloaded':
      return refused(answer.refusal)
    case 'blocked':
      return refused(explainBlocked(answer.by), answer.balanceNanos)
    case 'refused': {
      const { caller, profile, method, path } = ask
      if (answer.refusal.reason === 'unknown_key') {
        const found = await findCaller(caller.digest, false, core)
        return refused(found.refusal ?? refuseKey('unknown_key'))
      }
      const { unpricedModel: unpriced } = profile
      const refusal = blameEndpoint(answer.refusal, ask)
      const isForModels = refusal.reason === 'model_not_allowed' || refusal.reason === 'models_unknown'
      const request = {
        endpoint: `${method} ${recordable(path, caller.redact)}`,
        unmeteredMember: profile.unmeteredMember,
        model: unpriced ?? profile.model,
        closestModel: unpriced === null ? null : core.prices.closestModel(unpriced, core.clock.nowMs()),
        allowedModels: isForModels ? await allowedModelsOf(ask, core) : [],
        refusesAllKeys: profile.unratable?.refuse === 'always',
      }
      return refused(explainRefusal(refusal, request), answer.balanceNanos)
    }
  }
}

function blameEndpoint(refusal: CallRefusal, { endpoint }: Ask): CallRefusal {
  return endpoint === null && refusal.reason === 'models_unknown'
    ? { reason: 'endpoint_not_metered' }
    : refusal
}

/** Reads the allowlist only after a model was refused, so that admissions need not carry it. */
async function allowedModelsOf({ caller: { digest } }: Ask, core: Core): Promise<readonly string[]> {
  try {
    const { caller } = await findCaller(digest, false, core)
    const key = caller && (await core.store.getKey(caller.accountId, caller.keyId, core.clock.nowMs()))
    return key?.allowedModels ?? []
  } catch {
    return []
  }
}

const CLIENT_LEFT = { kind: 'client_left' } as const

/** Waits in the queue while calls in flight hold the rest of a limit, and requests admission again in its turn. */
async function waitInQueue(
  ask: Ask,
  entry: QueueEntry,
  first: Blocked,
  core: Core,
): Promise<AdmissionAnswer> {
  const { presence } = ask.caller
  // If the client left during the store's transaction, its close event has already fired.
  if (presence.isOver) return CLIENT_LEFT
  const leave = () => entry.end('left')
  presence.whenClosed.add(leave)
  let blocked = first
  let admitted = false
  const { keyId, personId, accountId } = first
  const unsent = describeUnsent(ask, ask.profile.model, core.clock)
  core.waitingCalls.add(unsentCall({ ...unsent, state: 'waiting', keyId, personId, accountId }))
  try {
    for (;;) {
      const wakeup = await entry.wait(blocked)
      if (wakeup === 'left') return CLIENT_LEFT
      // Do not request again: budget that has become free belongs to the calls that wait.
      if (wakeup === 'full') return blocked
      const refusal = refuseOverload(core)
      if (refusal !== null) return { kind: 'overloaded', refusal }
      const answer = await tryAdmit(ask, { ...FIRST_ATTEMPT, hasWaited: true }, core)
      admitted = answer.kind === 'admitted'
      if (answer.kind !== 'blocked' || wakeup === 'timed_out') return answer
      blocked = answer
    }
  } finally {
    presence.whenClosed.remove(leave)
    core.waitingCalls.remove(ask.requestId)
    entry.done(admitted)
  }
}

/** The record of a call that was not sent upstream. */
export function describeUnsent(asked: Asked, modelAsked: string | null, clock: Pick<Core['clock'], 'nowMs'>) {
  const described = describeAsked(asked, modelAsked)
  return {
    ...described,
    startedAtMs: requestInstantMs(described.requestId) ?? Math.trunc(clock.nowMs()),
  }
}

function refuseOverload({ inFlight, outbox }: Core): Refusal | null {
  if (inFlight.count >= limits.callsInFlightMax) {
    return refuse(
      'no_memory',
      `This node already has ${limits.callsInFlightMax} calls in flight, its maximum. Nothing was sent upstream; retry in a second.`,
    )
  }
  if (outbox.waiting >= SETTLEMENTS_WAITING_MAX) {
    return refuse(
      'store_unavailable',
      'Too many finished calls are waiting to be written to the database. Nothing was sent upstream; retry in a second.',
    )
  }
  if (!outbox.isDurable) {
    return refuse(
      'store_unavailable',
      'The gateway can record finished calls neither in its database nor on its disk. Nothing was sent upstream; retry in a second.',
    )
  }
  return null
}

type AttemptOptions = Pick<CallOpening, 'hasWaited' | 'hasBegun' | 'isCheckOnly'>

const FIRST_ATTEMPT: AttemptOptions = { hasWaited: false, hasBegun: false, isCheckOnly: false }

/** The call belongs to the month of this attempt, not of its arrival, because it may have waited. */
function tryAdmit(ask: Ask, attempt: AttemptOptions, core: Core): Promise<Admission> {
  const { caller, profile } = ask
  const described = describeAsked(ask, profile.model)
  return core.store.admit({
    ...described,
    digest: caller.digest,
    atMs: core.clock.nowMs(),
    hold: profile.hold,
    models: profile.models,
    ambiguity: ask.ambiguity,
    priceVersion: profile.version.id,
    rating: redactForeign(caller.redact(writeRating(profile.context))),
    unratable: profile.unratable,
    countsHolds: core.budgetMode === 'exact',
    unboundedNanos: core.unboundedNanos,
    isRequest: profile.hold.kind !== 'none' && ask.isStanding !== true,
    isStanding: ask.isStanding === true,
    objectId: ask.method === 'DELETE' ? objectIdIn(ask.surface, ask.path) : null,
    ...attempt,
  })
}

function refused(refusal: Refusal, balanceNanos: Nanos | null = null): NotAdmitted {
  return { kind: 'refused', refusal, balanceNanos }
}
