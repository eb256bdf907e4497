import { firstValue } from '../http/raw-headers.ts'
import type { CallEnd } from '../http/upstream-call.ts'
import type { AdmittedCall } from '../http-calls/call.ts'
import type { Figures } from '../http-calls/permitted-changes.ts'
import type { ReplyHead } from '../http-calls/reply.ts'
import { NANOS_PER_USD } from '../kernel/money.ts'
import type { Redact } from '../kernel/secret.ts'
import { NO_USAGE, UNITS, type Unit, type Usage } from '../kernel/usage.ts'
import type { CallClosing, CallRecord } from '../ledger/call.ts'
import { NOTHING_USED, type TokenCounts } from '../ledger/call-columns.ts'
import type { Metered } from '../metering/meter.ts'
import { MODEL_NAME_CHARS_MAX } from '../metering/request-facts.ts'
import { isPricedByCharacter, spokenCharacters } from '../providers/chat/audio.ts'
import { isFinal, isObjectId, statesUsage } from '../providers/deferred-kinds.ts'
import { isJsonType } from '../providers/surfaces.ts'
import { type EndedAs, type Estimates, estimateUsage, learnFrom, type ReplyTimes } from './estimates.ts'
import type { CallPlan, RatedCall } from './pricer.ts'

export interface CallOutcome {
  readonly end: CallEnd
  readonly head: ReplyHead | null
  /** The result of the meter. Null for an error, and for a reply that costs nothing. */
  readonly metered: Metered | null
  readonly bytesOut: number
  readonly times: ReplyTimes
  readonly elapsedMs: number
  readonly stored?: StoredResponse | null
}

/** A stored response whose stream was cut. `deferred`: still running, billed later. `unstated`: ended without usage. */
export type StoredResponse =
  | { readonly kind: 'stated'; readonly metered: Metered }
  | ({ readonly kind: 'deleted' } & HeldFigures)
  | { readonly kind: 'deferred' | 'missing' | 'unstated' }

type HeldFigures = Pick<CallRecord, 'holdNanos' | 'holdListNanos'>

export function billHold({ holdNanos, holdListNanos }: HeldFigures, head: ReplyHead | null = null): Bill {
  return { ...billWithoutCost(head), costNanos: holdNanos, listNanos: holdListNanos, estimated: true }
}

type BilledCall = Pick<AdmittedCall, 'surface' | 'plan' | 'request' | 'admission'>

export interface Billing {
  readonly estimates: Estimates
  readonly clock: { nowMs(): number }
}

/** The closing without the fields that only the caller knows: id, times, bytes and `streamed`. */
export type Bill = Omit<
  CallClosing,
  'requestId' | 'atMs' | 'streamed' | 'upstreamMs' | 'overheadMs' | 'bytesIn' | 'bytesOut'
>

export const NOTHING_BILLED: Bill = { ...NOTHING_USED, state: 'released' }

export function billWithoutCost(head: ReplyHead | null): Bill {
  const upstreamId = upstreamRequestId(head)
  return { ...NOTHING_BILLED, state: 'settled', status: head?.status ?? null, upstreamRequestId: upstreamId }
}

export const LOST: Bill = { ...NOTHING_BILLED, state: 'interrupted' }

/** Charges stated or estimated usage. Unsent calls and errors are free. Without an answer, the hold counts as lost. */
export function billCall(call: BilledCall, observed: CallOutcome, billing: Billing): Bill | Promise<Bill> {
  const { plan } = call
  const { stored } = observed
  const outcome = stored?.kind === 'stated' ? { ...observed, metered: stored.metered } : observed
  const { end, head, metered, bytesOut } = outcome
  if (head === null && end.kind === 'failed') {
    return end.whole && plan.hold.kind !== 'none' ? LOST : NOTHING_BILLED
  }
  if (head === null && end.kind === 'abandoned' && (!end.sent || end.partly)) return NOTHING_BILLED
  if (stored?.kind === 'deleted') return billHold(stored, head)
  if (!plan.metered || metered === null || !isSuccess(head)) return freeBill(plan, head)
  const isMedia = plan.reader === 'images' || plan.reader === 'speech'
  if (failedBeforeOutput(metered, isMedia ? bytesOut : 0)) return freeBill(plan, head)
  const charged =
    head === null
      ? metered
      : { ...metered, usage: withNewContainers(plan.withFees(metered.usage), metered, billing) }
  const stated = rateStated(call, charged)
  if (stated !== null) {
    if (end.kind === 'complete') learnFrom(metered, estimateInputs(call, outcome), billing.estimates)
    return billOf(plan, head, stated)
  }
  if (plan.estimatesUsage) return estimateAndBill(call, outcome, charged, billing.estimates)
  if (plan.deferredKind === null) return freeBill(plan, head)
  // Upstream works on an object whose id we do not know. We cannot poll for it, so its cost is lost.
  if (!isFinal(metered)) return LOST
  return statesUsage(metered)
    ? freeBill(plan, head)
    : estimateAndBill(call, outcome, charged, billing.estimates)
}

/** Counts only the containers of a call that were not charged in the last 20 minutes. */
export function withNewContainers(
  usage: Usage,
  { containerIds }: Pick<Metered, 'containerIds'>,
  { estimates, clock }: Billing,
): Usage {
  if (containerIds.length === 0) return usage
  const containers = estimates.chargeContainers(containerIds, clock.nowMs())
  const parts = usage.parts.map((part) => {
    const { containers: stated, ...quantities } = part.quantities
    if (stated === undefined) return part
    return { ...part, quantities: containers === 0 ? quantities : { ...quantities, containers } }
  })
  return { ...usage, parts }
}

function freeBill(plan: CallPlan, head: ReplyHead | null): Bill {
  return { ...billWithoutCost(head), unpriced: plan.unratable !== null && isSuccess(head) }
}

function billOf(plan: CallPlan, head: ReplyHead | null, { usage, rated, estimated }: RatedUsage): Bill {
  const bill = billUsage(usage, rated, head)
  return { ...bill, estimated, modelServed: bill.modelServed ?? plan.modelDefault }
}

export function billUsage(usage: Usage, rated: RatedCall, head: ReplyHead | null = null): Bill {
  return {
    ...NOTHING_BILLED,
    state: 'settled',
    status: head?.status ?? null,
    upstreamRequestId: upstreamRequestId(head),
    costNanos: rated.costNanos,
    listNanos: rated.listNanos,
    unpriced: rated.unpriced,
    pricedAsRequested: rated.pricedAsRequested,
    modelServed: usage.modelServed?.slice(0, MODEL_NAME_CHARS_MAX) ?? null,
    stopReason: usage.stopReason,
    estimated: usage.suspect,
    usage: JSON.stringify(usage),
    tokens: tokenCounts(usage),
  }
}

export const RECORDED_CHARS_MAX = 256

/** Some upstreams echo the requested model name, including a secret that a client put there. */
export function withoutSecrets(bill: Bill, redact: Redact): Bill {
  const clean = (text: string | null) => (text === null ? null : redact(text))
  const short = (text: string | null) => clean(text?.slice(0, RECORDED_CHARS_MAX) ?? null)
  return {
    ...bill,
    modelServed: clean(bill.modelServed),
    usage: clean(bill.usage),
    stopReason: short(bill.stopReason),
    upstreamRequestId: short(bill.upstreamRequestId),
  }
}

/** An event stream longer than this is not only an error: it has delivered audio or an image. */
const ERROR_BYTES_MAX = 16 * 1024

/** Whether the reply failed before any output. Then it is free, although a stream states its input first. */
function failedBeforeOutput(metered: Metered, mediaBytes: number): boolean {
  const { error, inputKnown, outputKnown, output, shown } = metered
  if (error === null || (inputKnown && outputKnown)) return false
  const hasMedia = mediaBytes > ERROR_BYTES_MAX
  if (isBrokenOff(metered) && (shown.toolsRan || shown.reasons || hasMedia)) return false
  return output.text + output.thinking + output.tool === 0
}

function isBrokenOff({ error, stage }: Metered): boolean {
  return error !== null && stage !== 'over'
}

/** The id of a stored response that was cut before it stated its usage. It can be fetched from upstream. */
export function storedResponseId(
  { plan }: AdmittedCall,
  observed: Metered | null,
  end: CallEnd,
): string | null {
  if (observed === null || observed.objectId === null || observed.outputKnown) return null
  if (end.kind === 'complete' && !isBrokenOff(observed)) return null
  if (plan.deferredKind !== null || !plan.unseen().stored) return null
  return isObjectId(observed.objectId) ? observed.objectId : null
}

/** A larger cost is an error of upstream, and would not fit the column. */
const PLAUSIBLE_NANOS_MAX = 1_000_000n * NANOS_PER_USD
const PLAUSIBLE_TOKENS_MAX = 1_000_000_000_000

interface RatedUsage {
  readonly usage: Usage
  readonly rated: RatedCall
  readonly estimated: boolean
}

/** The figures of a reply whose price depends on the request alone; null for other replies. */
export function figuresOfRequest(call: BilledCall): Figures | null {
  const stated = call.plan.reader === 'speech' ? statedByRequest(call) : null
  if (stated === null) return null
  const { costNanos, listNanos } = stated.rated
  return { costNanos, listNanos, balanceNanos: call.admission.balanceNanos - costNanos }
}

function statedByRequest({ plan, request, admission }: BilledCall): RatedUsage | null {
  const characters = isPricedByCharacter(plan.modelAsked) ? spokenCharacters(request.facts) : null
  if (characters === null) return null
  const part = { model: null, quantities: { input_characters: characters }, promptTokens: 0 }
  const usage = { ...NO_USAGE, parts: [part] }
  return { usage, rated: plan.rate(usage, admission.terms), estimated: false }
}

/** Null if the usage is incomplete or implausible. */
function rateStated(call: BilledCall, metered: Metered): RatedUsage | null {
  const { plan, admission } = call
  if (!metered.inputKnown) {
    const stated = statedByRequest(call)
    return stated === null ? null : { ...stated, usage: { ...metered.usage, parts: stated.usage.parts } }
  }
  if (!metered.outputKnown) return null
  const { usage } = metered
  const rated = plan.rate(usage, admission.terms)
  // Some transcripts state seconds although the model is priced per token.
  const isOtherUnit = rated.unpriced && rated.listNanos === 0n && plan.unpricedModel === null
  if (plan.reader === 'transcription' && isOtherUnit) return null
  return isPlausible(usage, rated) ? { usage, rated, estimated: usage.suspect } : null
}

const STALLED_MS = 5_000

/** If the client was not reading when the reply broke, upstream may have cut it for that reason. */
function endedAs({ end, head, metered, times, stored }: CallOutcome): EndedAs {
  const isBroken = stored?.kind === 'missing' || (metered?.error ?? null) !== null
  if (end.kind === 'complete') return isBroken ? 'broken' : 'whole'
  if (end.kind === 'abandoned') return isBroken ? 'broken' : 'left'
  return head !== null && times.stalledMs >= STALLED_MS ? 'left' : 'broken'
}

function estimateInputs(
  { plan, request, admission }: BilledCall,
  { head, elapsedMs, times, bytesOut }: CallOutcome,
) {
  const unseen = plan.unseen()
  const type = head === null ? null : (firstValue(head.headers, 'content-type') ?? '')
  const isDocument = type === null ? !unseen.streams : isJsonType(type)
  const { keyId } = admission
  return { keyId, plan, request, unseen, bytesOut, times, isDocument, elapsedMs }
}

/** The bill of a call without plausible stated usage. If upstream broke the reply, the rest of the hold is lost. */
async function estimateAndBill(
  call: BilledCall,
  outcome: CallOutcome,
  metered: Metered,
  estimates: Estimates,
): Promise<Bill> {
  const { plan, admission } = call
  const facts = { ...estimateInputs(call, outcome), endedAs: endedAs(outcome) }
  const estimate = async (reading: Metered): Promise<RatedUsage> => {
    const usage = await estimateUsage(reading, facts, estimates)
    return { usage, rated: plan.rate(usage, admission.terms), estimated: true }
  }
  const isFullyStated = metered.inputKnown && metered.outputKnown
  const partlyStated = isFullyStated ? null : await estimate(metered)
  const unstated = { ...metered, inputKnown: false, outputKnown: false, outputTokensSeen: 0 }
  const nothingStated = { ...unstated, usage: { ...metered.usage, parts: [], suspect: true } }
  const isUsable = partlyStated !== null && isPlausible(partlyStated.usage, partlyStated.rated)
  const bill = billOf(plan, outcome.head, isUsable ? partlyStated : await estimate(nothingStated))
  return { ...bill, losesRest: facts.endedAs === 'broken' }
}

export function isPlausible(usage: Usage, { listNanos }: RatedCall): boolean {
  const { input, output, cacheRead, cacheWrite } = tokenCounts(usage)
  return listNanos <= PLAUSIBLE_NANOS_MAX && input + output + cacheRead + cacheWrite <= PLAUSIBLE_TOKENS_MAX
}

/** A missing head counts as success: the client left before upstream answered. */
function isSuccess(head: ReplyHead | null): boolean {
  return head === null || (head.status >= 200 && head.status < 300)
}

export function upstreamRequestId(head: ReplyHead | null): string | null {
  if (head === null) return null
  const { headers } = head
  return firstValue(headers, 'request-id') ?? firstValue(headers, 'x-request-id') ?? null
}

const TOKEN_KINDS: ReadonlyMap<string, keyof TokenCounts> = new Map(
  UNITS.filter((unit) => unit.endsWith('_tokens')).map((unit) => {
    if (unit.includes('cache_read')) return [unit, 'cacheRead']
    if (unit.startsWith('cache_write')) return [unit, 'cacheWrite']
    return [unit, unit.includes('output') ? 'output' : 'input']
  }),
)

function tokenCounts(usage: Usage): TokenCounts {
  const counts = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
  for (const { quantities } of usage.parts) {
    for (const unit in quantities) {
      const kind = TOKEN_KINDS.get(unit)
      if (kind !== undefined) counts[kind] += quantities[unit as Unit] ?? 0
    }
  }
  return counts
}
