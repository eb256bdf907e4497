import type { Work } from '../calls/ask.ts'
import { isPlausible } from '../calls/bill.ts'
import { type CallPlan, planTurn, rateFor } from '../calls/call-plan.ts'
import { NOTHING_COUNTABLE } from '../calls/estimates.ts'
import type { Gateway } from '../http-calls/gateway.ts'
import { refuse } from '../kernel/errors.ts'
import { RecentEntries } from '../kernel/recent-entries.ts'
import type { Usage } from '../kernel/usage.ts'
import type { ReadingPace } from '../metering/reading-pace.ts'
import { tokenLimits } from '../pricing/hold.ts'
import {
  REALTIME,
  type SessionMessage,
  type SessionSettings,
  sessionEvent,
  sessionMessage,
} from '../providers/realtime-events.ts'
import {
  cutResponseUsage,
  realtimeUsage,
  statesTotals,
  transcriptionUsage,
} from '../providers/socket-usage.ts'
import { NO_LANE, type OpenTurn, OTHER_EVENT, type ServerEvent } from './lanes.ts'
import { RealtimeTraffic } from './realtime-traffic.ts'
import type { ClientIntent, ModelCheck, RefusedIntent, SocketProtocol } from './socket-protocol.ts'
import type { TurnCall } from './turn-call.ts'

const COMMITTED = 'input_audio_buffer.committed'
const TRANSCRIBED = 'conversation.item.input_audio_transcription.completed'
const MODEL_UNKNOWN = 'The session does not say which model transcribes its audio.'

const ITEMS_MIN = 256

/** The protocol of `/v1/realtime`, where both sides can begin a response. Only the transcription model can change. */
export class RealtimeProtocol implements SocketProtocol {
  readonly reader = null
  readonly #gateway: Gateway
  readonly #model: string
  readonly #pace: ReadingPace
  readonly #traffic: RealtimeTraffic
  #transcribedBy: string | null = null
  /** The model that transcribes an item: the session may change it before the transcript comes. */
  readonly #transcribing = new RecentEntries<string>(ITEMS_MIN)

  constructor(gateway: Gateway, model: string, pace: ReadingPace) {
    this.#gateway = gateway
    this.#model = model
    this.#pace = pace
    this.#traffic = new RealtimeTraffic()
  }

  async readClient(payload: Buffer): Promise<ClientIntent> {
    const message = await sessionMessage(payload, this.#pace)
    if (message.kind !== 'event') return this.refused(message.detail)
    const { type, eventId: tag, audioBytes } = message
    const textBytes = type === 'input_audio_buffer.append' ? 0 : payload.length - audioBytes
    this.#traffic.sent(audioBytes, textBytes)
    const check = this.#check(message)
    if (type !== 'response.create') return { kind: 'pass', check }
    return { kind: 'begins', lane: NO_LANE, tag, planned: this.planUnrequested(), check }
  }

  refused(detail: string): RefusedIntent {
    const refusal = refuse('bad_request', detail)
    return { kind: 'refused', refusal, lane: NO_LANE, tag: null, planned: this.planUnrequested() }
  }

  readServer(payload: Buffer): ServerEvent {
    const event = sessionEvent(payload)
    if (event === null) return OTHER_EVENT
    const { type, responseId, session, usage, itemId, status: stopReason } = event
    if (session !== null) this.#configured(session)
    if (type === 'error') return { ...OTHER_EVENT, kind: 'failed', tag: event.aboutEventId }
    if (type === COMMITTED && itemId !== null && this.#transcribedBy !== null)
      this.#transcribing.set(itemId, this.#transcribedBy)
    if (type === TRANSCRIBED && usage !== null) return { ...OTHER_EVENT, kind: 'transcribed', usage, itemId }
    if (type === 'response.created') return { ...OTHER_EVENT, kind: 'began', responseId }
    if (type === 'response.done') return { ...OTHER_EVENT, kind: 'ended', responseId, usage, stopReason }
    if (responseId === null) return OTHER_EVENT
    this.#traffic.received(responseId, event.deltaBytes, type.endsWith('audio.delta'))
    return { ...OTHER_EVENT, kind: 'part', responseId }
  }

  planUnrequested(): Work {
    return this.#plan('realtime', this.#model)
  }

  began({ responseId }: OpenTurn<TurnCall>): void {
    this.#traffic.began(responseId)
  }

  usageOf({ turn, responseId, hasBegun }: OpenTurn<TurnCall>, event: ServerEvent | null): Usage {
    const plan = turn.ask.profile
    const cut = this.#traffic.take(responseId, hasBegun)
    const estimate = cutResponseUsage(cut, this.#model, tokenLimits(plan, this.#model, plan.version).input)
    if (event === null) return estimate
    const { usage, stopReason } = event
    const stated = { ...realtimeUsage(usage, this.#model), stopReason }
    const hasOutput = cut.outputAudioMs + cut.outputTextBytes > 0
    if (usage === null && stopReason === 'failed' && !hasOutput) return stated
    if (!statesTotals(usage) || !isPlausible(stated, rateFor(plan, stated)))
      return { ...estimate, stopReason }
    this.#traffic.ended(stated)
    return stated
  }

  transcriptionOf({ usage, itemId }: ServerEvent): { readonly planned: Work; readonly usage: Usage } {
    const model = this.#transcribing.get(itemId ?? '') ?? this.#transcribedBy
    return { planned: this.#plan('transcription', model), usage: transcriptionUsage(usage, model) }
  }

  #configured(session: SessionSettings): void {
    this.#traffic.configured(session)
    if (session.transcription !== undefined) this.#transcribedBy = session.transcription?.model ?? null
  }

  /** The models in a message that the allowlist must allow; null if it names only the session's models. */
  #check(event: SessionMessage & { readonly kind: 'event' }): ModelCheck | null {
    const { session, responseModel, eventId: tag } = event
    const others = [session?.model, responseModel].filter((name) => (name ?? this.#model) !== this.#model)
    const transcription = session?.transcription ?? null
    const named = transcription?.model ?? null
    const isChanged = transcription !== null && (named === null || named !== this.#transcribedBy)
    if (others.length === 0 && !isChanged) return null
    const planned = this.#plan('transcription', named)
    const unknown = isChanged && named === null ? MODEL_UNKNOWN : null
    const models = { names: named === null ? [] : [named], unknown, batchFile: null }
    const profile: CallPlan = { ...planned.profile, models, hold: { kind: 'none' } }
    const [other] = others
    if (other === undefined) return { tag, limited: null, planned: { ...planned, profile } }
    const message = `This session uses the model ${this.#model} and cannot change to ${other}. Open another WebSocket for ${other}.`
    const limited = refuse('model_not_allowed', message)
    const unratable = { reason: 'endpoint_not_metered', refuse: 'limited' } as const
    return { tag, limited, planned: { ...planned, profile: { ...profile, unratable } } }
  }

  #plan(kind: 'realtime' | 'transcription', model: string | null): Work {
    const turn = { kind, model, atMs: this.#gateway.clock.nowMs() }
    return {
      bytes: NOTHING_COUNTABLE,
      ambiguity: null,
      endpoint: REALTIME,
      profile: planTurn(turn, this.#gateway.prices),
    }
  }
}
