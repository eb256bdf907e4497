import { NANOS_PER_USD, type Nanos } from '../kernel/money.ts'
import type { Redact } from '../kernel/secret.ts'
import { NO_USAGE, UNITS, type Unit, type Usage } from '../kernel/usage.ts'
import { type AccountTerms, credentialScope } from '../ledger/account.ts'
import type { CallClosing, UsedContainers } from '../ledger/call.ts'
import { NOTHING_USED, type TokenCounts } from '../ledger/call-columns.ts'
import { deliveredBytes, type Metered } from '../metering/meter.ts'
import { withCallFees } from '../pricing/call-fees.ts'
import { tokenLimits } from '../pricing/hold.ts'
import { findPriceFor, isPricedPer } from '../pricing/price-book.ts'
import type { Rating } from '../pricing/rate.ts'
import { isFinal, isObjectId, statesUsage } from '../providers/deferred-kinds.ts'
import { MODEL_NAME_CHARS_MAX } from '../providers/request-facts.ts'
import { isJsonType } from '../providers/surfaces.ts'
import type { Store } from '../store/store.ts'
import type { Ask } from './ask.ts'
import { type CallPlan, rateFor } from './call-plan.ts'
import { type EndedAs, estimateUsage } from './estimates.ts'
import type { AnswerHead, Evidence, HoldFigures } from './evidence.ts'

export function billHold({ holdNanos, holdListNanos }: HoldFigures, answer: AnswerHead | null = null): Bill {
  return { ...billWithoutCost(answer), costNanos: holdNanos, listNanos: holdListNanos, estimated: true }
}

/** What a bill depends on, apart from the evidence: a hold, or its parts. */
export interface BilledCall {
  readonly ask: Pick<Ask, 'requestId' | 'surface' | 'profile' | 'bytes'>
  readonly terms: AccountTerms & {
    readonly accountId: string
    readonly keyId: string
    readonly balanceNanos: Nanos
  }
}

export interface Billing {
  readonly store: Pick<Store, 'chargeContainers' | 'readCachedShare'>
  readonly clock: { nowMs(): number }
}

/** The closing without the fields that only the caller knows: id, times, bytes and `streamed`. */
export type Bill = Omit<
  CallClosing,
  'requestId' | 'atMs' | 'streamed' | 'upstreamMs' | 'overheadMs' | 'bytesIn' | 'bytesOut'
>

export const NOTHING_BILLED: Bill = { ...NOTHING_USED, state: 'released' }

export function billWithoutCost(answer: AnswerHead | null): Bill {
  const { status = null, upstreamRequestId = null } = answer ?? {}
  return { ...NOTHING_BILLED, state: 'settled', status, upstreamRequestId }
}

export const LOST: Bill = { ...NOTHING_BILLED, state: 'interrupted' }

/** The last resort after a defect: all the output that the request could lead to, at its price. */
export function billOutputSide({ ask, terms }: BilledCall): Bill {
  const { profile } = ask
  const output = tokenLimits(profile, null, profile.version).output
  if (!profile.metered || output === null) return LOST
  const part = { model: null, quantities: { output_tokens: output }, promptTokens: 0 }
  const usage = { ...NO_USAGE, parts: [part] }
  return { ...billUsage(usage, rateFor(profile, usage, terms)), estimated: true }
}

/** Charges stated or estimated usage. Unsent calls and errors are free. Without an answer, the hold counts as lost. */
export async function billCall(call: BilledCall, observed: Evidence, billing: Billing): Promise<Bill> {
  const { profile } = call.ask
  const { stored } = observed
  const evidence = stored?.kind === 'stated' ? { ...observed, metered: stored.metered } : observed
  const { end, answer, metered, delivered } = evidence
  if (end === 'unsent') return NOTHING_BILLED
  if (answer === null && end === 'broken') return profile.hold.kind === 'none' ? NOTHING_BILLED : LOST
  if (stored?.kind === 'deleted') return billHold(stored, answer)
  if (!profile.metered || metered === null || !isSuccess(answer)) return freeBill(profile, answer)
  const isMedia = profile.reader === 'images' || profile.reader === 'speech'
  if (failedBeforeOutput(metered, isMedia ? delivered : 0)) return freeBill(profile, answer)
  const charged =
    answer === null
      ? metered
      : {
          ...metered,
          usage: await withNewContainers(
            withCallFees(metered.usage, profile, profile.context, profile.version),
            {
              callId: call.ask.requestId,
              scope: credentialScope(call.terms),
              ids: metered.containerIds,
            },
            billing,
          ),
        }
  const stated = rateStated(call, charged)
  if (stated !== null) return billOf(profile, answer, stated)
  if (profile.estimatesUsage) return await estimateAndBill(call, evidence, charged, billing)
  if (profile.deferredKind === null) return freeBill(profile, answer)
  // Upstream works on an object whose id we do not know. We cannot poll for it, so its cost is lost.
  if (!isFinal(metered)) return LOST
  return statesUsage(metered)
    ? freeBill(profile, answer)
    : await estimateAndBill(call, evidence, charged, billing)
}

/** Counts only the containers that no other call pays for. If the database does not answer, the call pays for all. */
export async function withNewContainers(
  usage: Usage,
  used: UsedContainers,
  { store, clock }: Billing,
): Promise<Usage> {
  const { length } = used.ids
  if (length === 0) return usage
  const containers = await store.chargeContainers(used, clock.nowMs()).catch(() => length)
  const parts = usage.parts.map((part) => {
    const { containers: stated, ...quantities } = part.quantities
    if (stated === undefined) return part
    return { ...part, quantities: containers === 0 ? quantities : { ...quantities, containers } }
  })
  return { ...usage, parts }
}

function freeBill(plan: CallPlan, answer: AnswerHead | null): Bill {
  return { ...billWithoutCost(answer), unpriced: plan.unratable !== null && isSuccess(answer) }
}

function billOf(plan: CallPlan, answer: AnswerHead | null, { usage, rated, estimated }: RatedUsage): Bill {
  const bill = billUsage(usage, rated, answer)
  return { ...bill, estimated, modelServed: bill.modelServed ?? plan.modelDefault }
}

export function billUsage(usage: Usage, rated: Rating, answer: AnswerHead | null = null): Bill {
  return {
    ...billWithoutCost(answer),
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
  return deliveredBytes(output) === 0
}

function isBrokenOff({ error, stage }: Metered): boolean {
  return error !== null && stage !== 'over'
}

/** The id of a stored response that was cut before it stated its usage. It can be fetched from upstream. */
export function storedResponseId(
  profile: CallPlan,
  observed: Metered | null,
  end: Evidence['end'],
): string | null {
  if (observed === null || observed.objectId === null || observed.outputKnown) return null
  if (end === 'complete' && !isBrokenOff(observed)) return null
  if (profile.deferredKind !== null || !profile.hidden.stored) return null
  return isObjectId(observed.objectId) ? observed.objectId : null
}

/** A larger cost is an error of upstream, and would not fit the column. */
const PLAUSIBLE_NANOS_MAX = 1_000_000n * NANOS_PER_USD
const PLAUSIBLE_TOKENS_MAX = 1_000_000_000_000

interface RatedUsage {
  readonly usage: Usage
  readonly rated: Rating
  readonly estimated: boolean
}

/** The figures of a reply whose price depends on the request alone; null for other replies. */
export function figuresOfRequest(
  call: BilledCall,
): { readonly costNanos: Nanos; readonly listNanos: Nanos; readonly balanceNanos: Nanos } | null {
  const stated = call.ask.profile.reader === 'speech' ? statedByRequest(call) : null
  if (stated === null) return null
  const { costNanos, listNanos } = stated.rated
  return { costNanos, listNanos, balanceNanos: call.terms.balanceNanos - costNanos }
}

function statedByRequest({ ask: { profile }, terms }: BilledCall): RatedUsage | null {
  const { version, model, endpoint } = profile
  const isPriced = isPricedPer('input_characters', findPriceFor(version, model), endpoint)
  const characters = isPriced ? profile.characters : null
  if (characters === null) return null
  const part = { model: null, quantities: { input_characters: characters }, promptTokens: 0 }
  const usage = { ...NO_USAGE, parts: [part] }
  return { usage, rated: rateFor(profile, usage, terms), estimated: false }
}

/** Null if the usage is incomplete or implausible. */
function rateStated(call: BilledCall, metered: Metered): RatedUsage | null {
  const { ask, terms } = call
  const plan = ask.profile
  if (!metered.inputKnown) {
    const stated = statedByRequest(call)
    return stated === null ? null : { ...stated, usage: { ...metered.usage, parts: stated.usage.parts } }
  }
  if (!metered.outputKnown) return null
  const { usage } = metered
  const rated = rateFor(plan, usage, terms)
  // Some transcripts state seconds although the model is priced per token.
  const isOtherUnit = rated.unpriced && rated.listNanos === 0n && plan.unpricedModel === null
  if (plan.reader === 'transcription' && isOtherUnit) return null
  return isPlausible(usage, rated) ? { usage, rated, estimated: usage.suspect } : null
}

const STALLED_MS = 5_000

/** If the client was not reading when the reply broke, upstream may have cut it for that reason. */
function endedAs({ end, answer, metered, times, stored }: Evidence): EndedAs {
  const isBroken = stored?.kind === 'missing' || (metered?.error ?? null) !== null
  if (end === 'complete') return isBroken ? 'broken' : 'whole'
  if (end === 'left') return isBroken ? 'broken' : 'left'
  return answer !== null && times.stalledMs >= STALLED_MS ? 'left' : 'broken'
}

/** The share of input that counts as cached. If the database does not answer, none does. */
export function findCachedShare(
  keyId: string,
  model: string | null,
  store: Pick<Store, 'readCachedShare'>,
): Promise<number> {
  return model === null ? Promise.resolve(0) : store.readCachedShare(keyId, model).catch(() => 0)
}

/** The bill of a call without plausible stated usage. If upstream broke the reply, the rest of the hold is lost. */
async function estimateAndBill(
  call: BilledCall,
  evidence: Evidence,
  metered: Metered,
  { store }: Billing,
): Promise<Bill> {
  const { profile: plan, bytes: request } = call.ask
  const { answer, delivered, times } = evidence
  const cachedShare = metered.inputKnown ? 0 : await findCachedShare(call.terms.keyId, plan.model, store)
  const isDocument = answer === null ? !plan.hidden.streams : isJsonType(answer.contentType)
  const ending = endedAs(evidence)
  const estimated = { plan, request, delivered, times, cachedShare, isDocument, endedAs: ending }
  const estimate = async (reading: Metered): Promise<RatedUsage> => {
    const usage = await estimateUsage(reading, estimated)
    return { usage, rated: rateFor(plan, usage, call.terms), estimated: true }
  }
  const isFullyStated = metered.inputKnown && metered.outputKnown
  const partlyStated = isFullyStated ? null : await estimate(metered)
  const unstated = { ...metered, inputKnown: false, outputKnown: false, outputTokensSeen: 0 }
  const nothingStated = { ...unstated, usage: { ...metered.usage, parts: [], suspect: true } }
  const isUsable = partlyStated !== null && isPlausible(partlyStated.usage, partlyStated.rated)
  const bill = billOf(plan, answer, isUsable ? partlyStated : await estimate(nothingStated))
  return { ...bill, losesRest: ending === 'broken' }
}

export function isPlausible(usage: Usage, { listNanos }: Rating): boolean {
  const { input, output, cacheRead, cacheWrite } = tokenCounts(usage)
  return listNanos <= PLAUSIBLE_NANOS_MAX && input + output + cacheRead + cacheWrite <= PLAUSIBLE_TOKENS_MAX
}

/** A missing answer counts as success: the client left before upstream answered. */
function isSuccess(answer: AnswerHead | null): boolean {
  return answer === null || (answer.status >= 200 && answer.status < 300)
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
