import type { Exchange } from '../http/exchange.ts'
import type { Upstream } from '../http/upstream-connection.ts'
import type { Call, IdentifiedCall, PlannedCall, ReadCall } from '../http-calls/call.ts'
import type { Gateway } from '../http-calls/gateway.ts'
import {
  describeCall,
  describeUnsent,
  explainBlocked,
  explainRefusal,
  explainSpent,
  recordable,
  SUSPENDED,
} from '../http-calls/refusals.ts'
import { type Denial, type Refusal, refuse } from '../kernel/errors.ts'
import type { HeaderNames } from '../kernel/header-names.ts'
import { limits } from '../kernel/limits.ts'
import type { Nanos } from '../kernel/money.ts'
import { alsoRedacting, redactForeign } from '../kernel/secret.ts'
import type { OwnUpstream, Surface } from '../kernel/vocabulary.ts'
import { refuseKey } from '../keys/credential.ts'
import type { BoundedFile } from '../ledger/account.ts'
import {
  type Admission,
  type CallOpening,
  type CallRefusal,
  HOLD_METHOD,
  unsentCall,
} from '../ledger/call.ts'
import { refuseSpent } from '../ledger/decide-admission.ts'
import { namedInFile } from '../providers/named-models.ts'
import { modelAsked } from '../providers/request-members.ts'
import type { Blocked, QueueEntry } from './admission-queue.ts'
import type { CallPlan } from './pricer.ts'

const SETTLEMENTS_WAITING_MAX = 20_000

export type AdmitResult =
  | (Admission & { readonly kind: 'admitted' })
  | ({ readonly kind: 'refused' } & Denial)
  | { readonly kind: 'client_left' }

export function upstreamFor(
  accountId: string,
  own: OwnUpstream | null,
  surface: Surface,
  { upstreams, ownUpstreams }: Gateway,
): Upstream | null {
  return own === null ? upstreams[surface] : ownUpstreams.open(accountId, surface, own)
}

/** The upstream that admission chose. Its key, if it is the account's, is redacted from everything that is recorded. */
export function upstreamOfAdmission(
  call: IdentifiedCall,
  { accountId, terms }: Admission & { readonly kind: 'admitted' },
  gateway: Gateway,
): { readonly upstream: Upstream; readonly exchange: Exchange } {
  const own = terms?.upstream ?? null
  const upstream = upstreamFor(accountId, own, call.surface, gateway) ?? call.upstream
  if (own === null) return { upstream, exchange: call.exchange }
  const { names } = call.exchange
  const redact = alsoRedacting(names.redact, upstream.key)
  return { upstream, exchange: { ...call.exchange, names: { ...names, redact } } }
}

export function findBatchFile({ endpoint, read, digest }: ReadCall, { store }: Gateway) {
  const fileId = endpoint?.model === 'batch_file' ? namedInFile(read.facts).batchFile : null
  return fileId === null ? null : store.findBatchFile(digest, fileId).catch(() => null)
}

export function planCall(
  { exchange, target, surface, endpoint, request, read: { facts } }: ReadCall,
  batchFile: BoundedFile | null,
  { pricer, clock }: Pick<Gateway, 'pricer' | 'clock'>,
): CallPlan {
  return pricer.plan({
    surface,
    method: exchange.method,
    path: target.path,
    query: target.query,
    endpoint,
    facts,
    modelAsked: modelAsked(facts),
    bodyBytes: request.lengthBytes,
    batchFile,
    atMs: clock.nowMs(),
  })
}

/**
 * For answers that depend on the key outside admission. Refuses a key that is unusable, or whose account is suspended;
 * `isPaid`: also a key without budget or credit.
 */
export async function findCaller(
  digest: Uint8Array,
  isPaid: boolean,
  names: HeaderNames,
  { store, clock }: Gateway,
) {
  const caller = await store.lookUpKey(digest, clock.nowMs())
  if (caller.kind !== 'api_key') {
    const refusal = refuseKey(caller.kind === 'refused' ? caller.reason : 'admin_key')
    return { caller: null, refusal, balanceNanos: null }
  }
  const { funds, isSuspended } = caller
  const spent = isPaid ? refuseSpent(funds) : null
  const refusal = isSuspended ? SUSPENDED : spent && explainSpent(spent, names)
  return { caller, refusal, balanceNanos: funds.balanceNanos }
}

/** Decides whether the call may go upstream. If so, its hold is on disk when this returns. */
export async function admit(call: PlannedCall, gateway: Gateway): Promise<AdmitResult> {
  const { exchange, plan, digest } = call
  // If the client left while its body was being read, its close event has already fired.
  if (exchange.res.isOver) return CLIENT_LEFT
  const entry = gateway.queues.enter(digest)
  const overload = refuseOverload(gateway)
  if (overload !== null) return refused(overload)
  // If calls of this key are already waiting, this one queues behind them.
  const blocked = plan.hold.kind === 'none' ? null : await lastBlocked(call, entry, gateway)
  const first = blocked ?? (await tryAdmit(call, FIRST_ATTEMPT, gateway))
  return await toResult(
    call,
    first.kind === 'blocked' ? await waitInQueue(call, entry, first, gateway) : first,
    gateway,
  )
}

/** Checks a call that takes over a hold or needs none. Never waits, and writes no row. */
export async function checkCall(call: PlannedCall, gateway: Gateway): Promise<AdmitResult> {
  return await toResult(call, await tryAdmit(call, { ...FIRST_ATTEMPT, isCheckOnly: true }, gateway), gateway)
}

async function toResult(call: PlannedCall, answer: AdmissionAnswer, gateway: Gateway): Promise<AdmitResult> {
  const { exchange, plan, digest } = call
  switch (answer.kind) {
    case 'admitted':
    case 'client_left':
      return answer
    case 'overloaded':
      return refused(answer.refusal)
    case 'blocked':
      return refused(explainBlocked(answer.by, exchange.names), answer.balanceNanos)
    case 'refused': {
      if (answer.refusal.reason === 'unknown_key') {
        const found = await findCaller(digest, false, exchange.names, gateway)
        return refused(found.refusal ?? refuseKey('unknown_key'))
      }
      const { unpricedModel: unpriced } = plan
      const refusal = blameEndpoint(answer.refusal, call.endpoint)
      const isForModels = refusal.reason === 'model_not_allowed' || refusal.reason === 'models_unknown'
      const request = {
        endpoint: `${exchange.method} ${recordable(call.target.path, exchange.names)}`,
        unmeteredMember: plan.unmeteredMember,
        model: unpriced ?? plan.modelAsked,
        closestModel: unpriced === null ? null : gateway.pricer.closestModel(unpriced, gateway.clock.nowMs()),
        allowedModels: isForModels ? await allowedModelsOf(call, gateway) : [],
        refusesAllKeys: plan.unratable?.refuse === 'always',
      }
      return refused(explainRefusal(refusal, request, exchange.names), answer.balanceNanos)
    }
  }
}

/** The last answer to a waiting call of the same key, or of the same account if it waits for the account. */
async function lastBlocked(call: Call, entry: QueueEntry, gateway: Gateway): Promise<Blocked | null> {
  const { queues } = gateway
  if (entry.lastBlocked !== null || !queues.hasAccountQueue) return entry.lastBlocked
  const { caller } = await findCaller(call.digest, false, call.exchange.names, gateway)
  const blocked = caller && queues.blockedByAccount(caller.accountId)
  return blocked && { ...blocked, keyId: caller.keyId }
}

function blameEndpoint(refusal: CallRefusal, endpoint: PlannedCall['endpoint']): CallRefusal {
  return endpoint === null && refusal.reason === 'models_unknown'
    ? { reason: 'endpoint_not_metered' }
    : refusal
}

/** Reads the allowlist only after a model was refused, so that admissions need not carry it. */
async function allowedModelsOf({ digest, exchange }: Call, gateway: Gateway): Promise<readonly string[]> {
  try {
    const { caller } = await findCaller(digest, false, exchange.names, gateway)
    const key = caller && (await gateway.store.getKey(caller.accountId, caller.keyId, gateway.clock.nowMs()))
    return key?.allowedModels ?? []
  } catch {
    return []
  }
}

const CLIENT_LEFT = { kind: 'client_left' } as const

type AdmissionAnswer =
  | Admission
  | { readonly kind: 'client_left' }
  | { readonly kind: 'overloaded'; readonly refusal: Refusal }

/** Waits in the queue while calls in flight hold the rest of a limit, and requests admission again in its turn. */
async function waitInQueue(
  call: PlannedCall,
  entry: QueueEntry,
  first: Blocked,
  gateway: Gateway,
): Promise<AdmissionAnswer> {
  const { exchange, plan } = call
  // If the client left during the store's transaction, its close event has already fired.
  if (exchange.res.isOver) return CLIENT_LEFT
  const leave = () => entry.end('left')
  exchange.res.whenClosed.add(leave)
  let blocked = first
  let admitted = false
  const { keyId, accountId } = first
  gateway.waitingCalls.add(
    unsentCall({ ...describeUnsent(call, plan.modelAsked, gateway), state: 'waiting', keyId, accountId }),
  )
  try {
    for (;;) {
      const wakeup = await entry.wait(blocked)
      if (wakeup === 'left') return CLIENT_LEFT
      // Do not request again: budget that has become free belongs to the calls that wait.
      if (wakeup === 'full') return blocked
      const refusal = refuseOverload(gateway)
      if (refusal !== null) return { kind: 'overloaded', refusal }
      const answer = await tryAdmit(call, { ...FIRST_ATTEMPT, hasWaited: true }, gateway)
      admitted = answer.kind === 'admitted'
      if (answer.kind !== 'blocked' || wakeup === 'timed_out') return answer
      blocked = answer
    }
  } finally {
    exchange.res.whenClosed.remove(leave)
    gateway.waitingCalls.remove(exchange.requestId)
    entry.done(admitted)
  }
}

function refuseOverload({ inFlight, settler }: Gateway): Refusal | null {
  if (inFlight.count >= limits.callsInFlightMax) {
    return refuse(
      'no_memory',
      `This node already has ${limits.callsInFlightMax} calls in flight, its maximum. Nothing was sent upstream; retry in a second.`,
    )
  }
  if (settler.waiting >= SETTLEMENTS_WAITING_MAX) {
    return refuse(
      'store_unavailable',
      'Too many finished calls are waiting to be written to the database. Nothing was sent upstream; retry in a second.',
    )
  }
  if (!settler.isDurable) {
    return refuse(
      'store_unavailable',
      'The gateway can record finished calls neither in its database nor on its disk. Nothing was sent upstream; retry in a second.',
    )
  }
  return null
}

/** Admits a call that upstream has already begun. It never queues. */
export function admitBegun(call: PlannedCall, gateway: Gateway): Promise<Admission> {
  return tryAdmit(call, { ...FIRST_ATTEMPT, hasBegun: true }, gateway)
}

type AttemptOptions = Pick<CallOpening, 'hasWaited' | 'hasBegun' | 'isCheckOnly'>

const FIRST_ATTEMPT: AttemptOptions = { hasWaited: false, hasBegun: false, isCheckOnly: false }

/** The call belongs to the month of this attempt, not of its arrival, because it may have waited. */
function tryAdmit(call: PlannedCall, attempt: AttemptOptions, gateway: Gateway): Promise<Admission> {
  const { exchange, plan } = call
  const described = describeCall(call, plan.modelAsked)
  return gateway.store.admit({
    ...described,
    digest: call.digest,
    atMs: gateway.clock.nowMs(),
    endpoint: call.endpoint?.template ?? described.path,
    hold: plan.hold,
    models: plan.models,
    ambiguity: call.read.unreadable,
    priceVersion: plan.priceVersion,
    rating: redactForeign(exchange.names.redact(plan.rating)),
    unratable: plan.unratable,
    countsHolds: gateway.budgetMode === 'exact',
    unboundedNanos: gateway.unboundedNanos,
    isRequest: plan.hold.kind !== 'none' && exchange.method !== HOLD_METHOD,
    ...attempt,
  })
}

function refused(refusal: Refusal, balanceNanos: Nanos | null = null): AdmitResult {
  return { kind: 'refused', refusal, balanceNanos }
}
