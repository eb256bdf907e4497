import type { Work } from '../calls/ask.ts'
import { isPlausible } from '../calls/bill.ts'
import { NOTHING_COUNTABLE } from '../calls/estimates.ts'
import type { CallPlan } from '../calls/pricer.ts'
import type { Gateway } from '../http-calls/gateway.ts'
import { refuse } from '../kernel/errors.ts'
import { RecentEntries } from '../kernel/memory.ts'
import type { Usage } from '../kernel/usage.ts'
import type { ReadingPace } from '../metering/reading-pace.ts'
import { PCM_BYTES_PER_MS } from '../providers/chat/audio.ts'
import {
  audioMs,
  type SessionMessage,
  sessionEvent,
  sessionMessage,
  turnRequest,
} from '../providers/realtime-events.ts'
import {
  type CutResponse,
  cutResponseUsage,
  realtimeUsage,
  statesTotals,
  transcriptionUsage,
} from '../providers/socket-usage.ts'
import {
  type ClientIntent,
  type ModelCheck,
  NO_LANE,
  type OpenTurn,
  OTHER_EVENT,
  type RefusedIntent,
  type ServerEvent,
  type SocketProtocol,
} from './socket-protocol.ts'

interface Traffic {
  readonly inputAudioMs: number
  readonly inputTextBytes: number
  outputAudioBytes: number
  outputTextBytes: number
}

const ITEMS_MIN = 256

const COMMITTED = 'input_audio_buffer.committed'
const TRANSCRIBED = 'conversation.item.input_audio_transcription.completed'
const MODEL_UNKNOWN = 'The session does not say which model transcribes its audio.'

/** The protocol of `/v1/realtime`, where both sides can begin a response. Only the transcription model can change. */
export class RealtimeProtocol implements SocketProtocol {
  readonly reader = null
  readonly upstreamBegins = true
  readonly #gateway: Gateway
  readonly #model: string
  readonly #pace: ReadingPace
  #transcribedBy: string | null = null
  /** The model that transcribes an item: the session may change it before the transcript comes. */
  readonly #transcribing = new RecentEntries<string>(ITEMS_MIN)
  #bytesPerMs = PCM_BYTES_PER_MS
  #spokenBytesPerMs = PCM_BYTES_PER_MS
  #inputAudioMs = 0
  #inputTextBytes = 0
  readonly #traffic = new Map<string, Traffic>()
  /** The usage of the response with the longest prompt so far. */
  #before: Usage | null = null

  constructor(gateway: Gateway, model: string, pace: ReadingPace) {
    this.#gateway = gateway
    this.#model = model
    this.#pace = pace
  }

  async readClient(payload: Buffer): Promise<ClientIntent> {
    const message = await sessionMessage(payload, this.#pace)
    if (message.kind !== 'event') return this.refused(message.detail)
    const { type, eventId: tag, audioBytes } = message
    this.#inputAudioMs += audioMs(audioBytes, this.#bytesPerMs)
    if (type !== 'input_audio_buffer.append') this.#inputTextBytes += payload.length - audioBytes
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
    const { type, responseId, session, usage, itemId } = event
    this.#bytesPerMs = session?.bytesPerMs ?? this.#bytesPerMs
    this.#spokenBytesPerMs = session?.spokenBytesPerMs ?? this.#spokenBytesPerMs
    if (session?.transcription !== undefined) this.#transcribedBy = session.transcription?.model ?? null
    if (type === 'error') return { ...OTHER_EVENT, kind: 'failed', tag: event.aboutEventId }
    if (type === COMMITTED && itemId !== null && this.#transcribedBy !== null)
      this.#transcribing.set(itemId, this.#transcribedBy)
    if (type === TRANSCRIBED && usage !== null) return { ...OTHER_EVENT, kind: 'transcribed', usage, itemId }
    const responseEvent = { ...OTHER_EVENT, responseId, usage, stopReason: event.status }
    if (type === 'response.created') return { ...responseEvent, kind: 'began' }
    if (type === 'response.done') return { ...responseEvent, kind: 'ended' }
    if (responseId === null) return OTHER_EVENT
    const traffic = this.#traffic.get(responseId)
    if (traffic !== undefined) {
      if (type.endsWith('audio.delta')) traffic.outputAudioBytes += event.deltaBytes
      else traffic.outputTextBytes += event.deltaBytes
    }
    return { ...responseEvent, kind: 'part' }
  }

  planUnrequested(): Work {
    return this.#plan('realtime', this.#model)
  }

  began({ responseId }: OpenTurn): void {
    this.#traffic.set(responseId ?? '', this.#takeInput())
  }

  usageOf({ turn, responseId, hasBegun }: OpenTurn, event: ServerEvent | null): Usage {
    const plan = turn.ask.profile
    const traffic = this.#traffic.get(responseId ?? '')
    this.#traffic.delete(responseId ?? '')
    const cut = this.#cutOf(traffic === undefined || !hasBegun ? this.#takeInput() : traffic)
    const estimate = cutResponseUsage(cut, this.#model, plan.holdTokens(this.#model).contextWindow)
    if (event === null) return estimate
    const { usage, stopReason } = event
    const stated = { ...realtimeUsage(usage, this.#model), stopReason }
    const hasOutput = cut.outputAudioMs + cut.outputTextBytes > 0
    if (usage === null && stopReason === 'failed' && !hasOutput) return stated
    if (!statesTotals(usage) || !isPlausible(stated, plan.rate(stated))) return { ...estimate, stopReason }
    // An out-of-band response does not read the conversation, so its smaller prompt proves nothing.
    if (promptTokens(stated) >= promptTokens(this.#before)) this.#before = stated
    return stated
  }

  transcriptionOf({ usage, itemId }: ServerEvent): { readonly planned: Work; readonly usage: Usage } {
    const model = this.#transcribing.get(itemId ?? '') ?? this.#transcribedBy
    return { planned: this.#plan('transcription', model), usage: transcriptionUsage(usage, model) }
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
    const { endpoint, facts } = turnRequest(turn)
    return {
      bytes: { ...NOTHING_COUNTABLE, facts },
      ambiguity: null,
      endpoint,
      profile: this.#gateway.pricer.planTurn(turn),
    }
  }

  #takeInput(): Traffic {
    const [inputAudioMs, inputTextBytes] = [this.#inputAudioMs, this.#inputTextBytes]
    this.#inputAudioMs = 0
    this.#inputTextBytes = 0
    return { inputAudioMs, inputTextBytes, outputAudioBytes: 0, outputTextBytes: 0 }
  }

  #cutOf({ outputAudioBytes, ...traffic }: Traffic): CutResponse {
    return {
      ...traffic,
      before: this.#before,
      outputAudioMs: audioMs(outputAudioBytes, this.#spokenBytesPerMs),
    }
  }
}

function promptTokens(usage: Usage | null): number {
  return usage?.parts[0]?.promptTokens ?? 0
}
