import { failureOf } from '../answer-request.ts'
import type { Behaviours } from '../behaviours.ts'
import { requireModel } from '../chat/chat-body.ts'
import type { Identity } from '../identity.ts'
import { asArray, asText, isObject, type JsonObject, mergeJson } from '../json.ts'
import { asRefusal, Refusal } from '../refusal.ts'
import {
  Conversation,
  type ConversationItem,
  countItems,
  heardItem,
  noTokens,
  readItem,
} from './conversation.ts'
import { type ClientEvent, type EventSocket, unknownType } from './event-socket.ts'
import { transcribe } from './input-transcription.ts'
import { type CancelReason, planRealtime, writeRealtime } from './realtime-response.ts'
import { SessionEvents } from './session-events.ts'
import { readAudio, SpeechBuffer } from './spoken-audio.ts'
import { writeTurn } from './write-turn.ts'

const commitMsMin = 100

/** WS /v1/realtime */
export function serveRealtime(socket: EventSocket): void {
  const { query } = socket.handshake
  const events = new SessionEvents(socket)
  try {
    const named = query.get('model') ?? undefined
    requireModel(named, 'v1/realtime', ['realtime'])
    const session = new RealtimeSession(events, asText(named))
    socket.listen(session.take, events.refuse)
    events.send('session.created', { session: session.json })
  } catch (error) {
    events.refuseSession(asRefusal(error))
  }
}

interface ActiveResponse {
  readonly id: string
  readonly isBeside: boolean
  readonly stop: AbortController
  reason?: CancelReason
}

class RealtimeSession {
  json: JsonObject
  readonly #events: SessionEvents
  readonly #conversation = new Conversation()
  readonly #conversationId: string
  readonly #speech = new SpeechBuffer()
  readonly #active = new Set<ActiveResponse>()
  /** The id of the item that the speech which has begun will become. */
  #speechItem: string | undefined
  #turn: Promise<void> = Promise.resolve()

  constructor(events: SessionEvents, model: string) {
    this.#events = events
    this.#conversationId = events.newId('conv')
    this.json = newSession(events, model)
  }

  readonly take = (event: ClientEvent): void => {
    const { json, type } = event
    const handle = this.#handlers[type]
    if (handle === undefined) throw unknownType(type, Object.keys(this.#handlers))
    handle(json, event)
  }

  readonly #handlers: Record<string, (json: JsonObject, event: ClientEvent) => void> = {
    'session.update': (json) => this.#update(json['session']),
    'conversation.item.create': (json) => this.#createItem(json),
    'conversation.item.retrieve': (json) => {
      const { json: item } = this.#conversation.find(asText(json['item_id']))
      this.#events.send('conversation.item.retrieved', { item })
    },
    'conversation.item.delete': (json) => {
      this.#conversation.delete(asText(json['item_id']))
      this.#events.send('conversation.item.deleted', { item_id: json['item_id'] })
    },
    'conversation.item.truncate': (json) => {
      const { item_id, content_index, audio_end_ms } = json
      this.#conversation.find(asText(item_id))
      this.#events.send('conversation.item.truncated', { item_id, content_index, audio_end_ms })
    },
    'input_audio_buffer.append': (json, event) => this.#hear(readAudio(json), event),
    'input_audio_buffer.clear': () => {
      this.#speech.clear()
      this.#events.send('input_audio_buffer.cleared')
    },
    'input_audio_buffer.commit': () => {
      if (this.#speech.lengthMs >= commitMsMin) return this.#commit()
      throw new Refusal(400, 'Error committing input audio buffer: buffer too small.', {
        code: 'input_audio_buffer_commit_empty',
      })
    },
    'output_audio_buffer.clear': () => undefined,
    'response.create': (json, event) =>
      this.#create(isObject(json['response']) ? json['response'] : {}, event),
    'response.cancel': (json) => this.#cancel(json['response_id']),
  }

  #update(update: unknown): void {
    if (!isObject(update))
      throw new Refusal(400, "Missing required parameter: 'session'.", { param: 'session' })
    for (const fixed of ['type', 'model']) {
      if (update[fixed] === undefined || update[fixed] === this.json[fixed]) continue
      throw new Refusal(400, `Cannot update a session's ${fixed}.`, {
        param: `session.${fixed}`,
        code: `cannot_update_${fixed}`,
      })
    }
    const updated = mergeJson(this.json, update)
    const { transcription } = inputOf(updated)
    if (isObject(transcription) && transcription['model'] !== undefined) {
      requireModel(transcription['model'], 'v1/realtime', ['transcription', 'live-transcription'])
    }
    this.json = updated
    this.#events.send('session.updated', { session: this.json })
  }

  #createItem({ item: given, previous_item_id: after }: JsonObject): void {
    if (typeof after === 'string' && after !== 'root') this.#conversation.find(after)
    const item = readItem(given, this.#events.newId('item'))
    const previous = this.#conversation.add(item)
    for (const state of ['added', 'done']) {
      this.#events.send(`conversation.item.${state}`, { previous_item_id: previous, item: item.json })
    }
  }

  #hear(bytes: Buffer, event: ClientEvent): void {
    const speech = this.#speech
    const { turn_detection: detection, format } = inputOf(this.json)
    speech.append(bytes, format)
    if (!isObject(detection)) return
    if (speech.isSpeech && this.#speechItem === undefined) {
      this.#speechItem = this.#events.newId('item')
      const started = {
        audio_start_ms: Math.round(speech.endMs - speech.lengthMs),
        item_id: this.#speechItem,
      }
      this.#events.send('input_audio_buffer.speech_started', started)
      const speaking = [...this.#active].find(({ isBeside }) => !isBeside)
      if (speaking !== undefined && detection['interrupt_response'] !== false) stop(speaking, 'turn_detected')
    }
    if (!speech.isOver) return
    const stopped = { audio_end_ms: speech.endMs, item_id: this.#speechItem }
    this.#events.send('input_audio_buffer.speech_stopped', stopped)
    this.#commit()
    if (detection['create_response'] !== false) this.#create({}, event)
  }

  #commit(): void {
    const heard = this.#speech.take()
    const item = heardItem(
      this.#speechItem ?? this.#events.newId('item'),
      heard.transcript,
      heard.audioTokens,
    )
    this.#speechItem = undefined
    const previous = this.#conversation.add(item)
    const itemId = item.json['id']
    this.#events.send('input_audio_buffer.committed', { previous_item_id: previous, item_id: itemId })
    for (const state of ['added', 'done']) {
      this.#events.send(`conversation.item.${state}`, { previous_item_id: previous, item: item.json })
    }
    const { transcription } = inputOf(this.json)
    if (isObject(transcription)) void transcribe(this.#events, asText(itemId), heard, transcription)
  }

  /** Begins a response: one at a time in the conversation, any number out of band. */
  #create(params: JsonObject, { json, position, bytes }: ClientEvent): void {
    const { socket } = this.#events
    const isBeside = params['conversation'] === 'none'
    const running = [...this.#active].find((active) => !active.isBeside && active.reason === undefined)
    if (!isBeside && running !== undefined) {
      const message = `Conversation already has an active response in progress: ${running.id}. Wait until the response is finished before creating a new one.`
      throw new Refusal(400, message, { code: 'conversation_already_has_active_response' })
    }
    const behaviours = socket.behavioursOf(params['metadata'])
    if (behaviours.status !== undefined) throw failureOf('chat', behaviours.status)
    const identity = socket.identityOf(position, bytes)
    const id = `resp_${identity.base62(21)}`
    const active: ActiveResponse = { id, isBeside, stop: new AbortController() }
    this.#active.add(active)
    const run = async (): Promise<void> => {
      try {
        await this.#write(active, params, identity, behaviours)
      } catch (error) {
        this.#events.refuse(asRefusal(error), json)
      } finally {
        this.#active.delete(active)
      }
    }
    // A response that was cancelled a moment ago still has to say so before this response begins.
    if (isBeside) void run()
    else this.#turn = this.#turn.then(run)
  }

  async #write(
    active: ActiveResponse,
    params: JsonObject,
    identity: Identity,
    behaviours: Behaviours,
  ): Promise<void> {
    const { socket, stamp } = this.#events
    const config = mergeJson({ ...this.json, metadata: null }, params)
    const instructions = `${asText(config['instructions'])}${toolsText(config['tools'])}`
    const own = Array.isArray(params['input']) ? this.#readInput(params['input']) : undefined
    const counted =
      own === undefined
        ? this.#conversation.read(instructions)
        : { input: countItems(own, instructions), cached: noTokens }
    const plan = planRealtime({
      id: active.id,
      config,
      conversationId: active.isBeside ? null : this.#conversationId,
      items: own ?? this.#conversation.items,
      ...counted,
      behaviours,
      identity,
    })
    await writeTurn(socket, {
      events: writeRealtime(plan, {
        cancelled: () => active.reason,
        addItem: (item) => this.#conversation.add(item),
      }),
      behaviours,
      pace: requireModel(this.json['model'], 'v1/realtime', ['realtime']).pace,
      interrupt: active.stop.signal,
      errorEvent: this.#events.failure(),
      stamp,
    })
  }

  /** Items that one response alone reads; a reference stands for an item of the conversation. */
  #readInput(items: readonly unknown[]): ConversationItem[] {
    return items.map((given) =>
      isObject(given) && given['type'] === 'item_reference'
        ? this.#conversation.find(asText(given['id']))
        : readItem(given, this.#events.newId('item')),
    )
  }

  #cancel(id: unknown): void {
    const running = [...this.#active].filter(({ reason }) => reason === undefined)
    const found = running.find((active) => (id === undefined ? !active.isBeside : active.id === id))
    if (found === undefined) {
      throw new Refusal(400, 'Cancellation failed: no active response found', {
        code: 'response_cancel_not_active',
      })
    }
    stop(found, 'client_cancelled')
  }
}

function inputOf({ audio }: JsonObject): JsonObject {
  return isObject(audio) && isObject(audio['input']) ? audio['input'] : {}
}

function stop(active: ActiveResponse, reason: CancelReason): void {
  active.reason = reason
  active.stop.abort()
}

function toolsText(tools: unknown): string {
  return asArray(tools).length === 0 ? '' : JSON.stringify(tools)
}

function newSession(events: SessionEvents, model: string): JsonObject {
  const format = { type: 'audio/pcm', rate: 24_000 }
  const detection = {
    type: 'server_vad',
    threshold: 0.5,
    prefix_padding_ms: 300,
    silence_duration_ms: 200,
    idle_timeout_ms: null,
  }
  const input = { format, transcription: null, noise_reduction: null }
  return {
    type: 'realtime',
    object: 'realtime.session',
    id: events.newId('sess'),
    expires_at: events.expiry(),
    include: null,
    model,
    output_modalities: ['audio'],
    instructions: '',
    tools: [],
    tool_choice: 'auto',
    max_output_tokens: 'inf',
    tracing: null,
    truncation: 'auto',
    prompt: null,
    audio: {
      input: { ...input, turn_detection: { ...detection, create_response: true, interrupt_response: true } },
      output: { format, voice: 'marin', speed: 1 },
    },
  }
}
