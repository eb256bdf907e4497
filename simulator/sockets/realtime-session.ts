import type { IncomingMessage } from 'node:http'
import { failureOf } from '../answer-request.ts'
import { chatErrorJson } from '../chat/chat-wire.ts'
import { requireModel } from '../chat/read-fields.ts'
import type { Identity } from '../identity.ts'
import { asText, isObject, type JsonObject, mergeJson } from '../json.ts'
import { asRefusal, Refusal } from '../refusal.ts'
import { countTokens } from '../text.ts'
import type { ClientEvent, EventSocket } from './event-socket.ts'
import { type RealtimeItem, readItem, SpeechBuffer } from './realtime-items.ts'
import { writeRealtime } from './realtime-response.ts'

/** WS /v1/realtime */
export function serveRealtime(socket: EventSocket): void {
  const session = new RealtimeSession(socket)
  socket.listen(session.take, session.refuse)
  session.open()
}

interface ActiveResponse {
  readonly id: string
  /** Whether the response is out of band: it neither reads nor adds to the conversation. */
  readonly isBeside: boolean
  readonly stop: AbortController
}

class RealtimeSession {
  readonly #socket: EventSocket
  readonly #identity: Identity
  readonly #speech = new SpeechBuffer()
  readonly #active = new Set<ActiveResponse>()
  readonly #items: RealtimeItem[] = []
  readonly #conversationId: string
  #json: JsonObject
  /** Tokens that the response before has read, which are cached. */
  #read = { text: 0, audio: 0 }
  #turn: Promise<void> = Promise.resolve()

  constructor(socket: EventSocket) {
    this.#socket = socket
    this.#identity = socket.identityOf(-1, {})
    this.#conversationId = this.#newId('conv')
    this.#json = newSession(this.#newId('sess'), modelOf(socket.handshake.req))
  }

  open(): void {
    try {
      requireModel(this.#json['model'], 'v1/realtime', 'realtime')
      this.#send('session.created', { session: this.#json })
    } catch (error) {
      const refusal = asRefusal(error)
      this.refuse(refusal, {})
      this.#socket.close(4_000, `invalid_request_error.${refusal.details.code}`)
    }
  }

  readonly take = (event: ClientEvent): void => {
    const { type, json } = event
    if (type === 'session.update') {
      this.#json = mergeJson(this.#json, isObject(json['session']) ? json['session'] : {})
      this.#send('session.updated', { session: this.#json })
    } else if (type === 'conversation.item.create') this.#addItem(readItem(json['item'], this.#newId('item')))
    else if (type === 'input_audio_buffer.append') this.#hear(event)
    else if (type === 'input_audio_buffer.clear') {
      this.#speech.take()
      this.#send('input_audio_buffer.cleared')
    } else if (type === 'response.create') {
      this.#create(isObject(json['response']) ? json['response'] : {}, event)
    } else if (type === 'response.cancel') this.#cancel(json['response_id'])
    else throw new Refusal(400, `Invalid value: '${type}'.`, { code: 'invalid_value', param: 'type' })
  }

  readonly refuse = (refusal: Refusal, about: JsonObject): void => {
    this.#send('error', { error: { ...chatErrorJson(refusal), event_id: asText(about['event_id']) || null } })
  }

  readonly #stamp = ({ type, ...rest }: JsonObject): JsonObject => ({
    type,
    event_id: this.#newId('event'),
    ...rest,
  })

  #send(type: string, fields: JsonObject = {}): void {
    void this.#socket.send(this.#stamp({ type, ...fields }))
  }

  #newId(prefix: string): string {
    return `${prefix}_${this.#identity.base62(21)}`
  }

  #addItem(item: RealtimeItem): void {
    const previous_item_id = this.#items.at(-1)?.json['id'] ?? null
    this.#items.push(item)
    for (const state of ['added', 'done']) {
      this.#send(`conversation.item.${state}`, { previous_item_id, item: item.json })
    }
  }

  /** Voice detection: a pause after speech commits the speech, transcribes it if asked to, and begins a response. */
  #hear(event: ClientEvent): void {
    this.#speech.append(Buffer.from(asText(event.json['audio']), 'base64'))
    const audio = isObject(this.#json['audio']) ? this.#json['audio'] : {}
    const { transcription, turn_detection } = isObject(audio['input']) ? audio['input'] : ({} as JsonObject)
    if (!isObject(turn_detection) || !this.#speech.isOver) return
    const { tokens, words } = this.#speech.take()
    const item_id = this.#newId('item')
    this.#send('input_audio_buffer.speech_started', { audio_start_ms: 0, item_id })
    this.#send('input_audio_buffer.speech_stopped', { audio_end_ms: 0, item_id })
    this.#send('input_audio_buffer.committed', { previous_item_id: null, item_id })
    const content = [{ type: 'input_audio', transcript: null }]
    const json = { id: item_id, object: 'realtime.item', type: 'message', status: 'completed', role: 'user' }
    this.#addItem({ json: { ...json, content }, counts: { text: 4, audio: tokens }, words })
    if (isObject(transcription)) {
      const output = countTokens(words)
      this.#send('conversation.item.input_audio_transcription.completed', {
        item_id,
        content_index: 0,
        transcript: words,
        usage: {
          type: 'tokens',
          total_tokens: tokens + output,
          input_tokens: tokens,
          input_token_details: { text_tokens: 0, audio_tokens: tokens },
          output_tokens: output,
        },
      })
    }
    this.#create({}, event)
  }

  /** Begins a response: one at a time in the conversation, any number out of band. */
  #create(params: JsonObject, event: ClientEvent): void {
    const isBeside = params['conversation'] === 'none'
    const running = [...this.#active].find((active) => !active.isBeside && !active.stop.signal.aborted)
    if (!isBeside && running !== undefined) {
      throw new Refusal(400, `Conversation already has an active response in progress: ${running.id}.`, {
        code: 'conversation_already_has_active_response',
      })
    }
    const behaviours = this.#socket.behavioursOf(params['metadata'])
    if (behaviours.status !== undefined) throw failureOf('chat', behaviours.status)
    const identity = this.#socket.identityOf(event.position, event.json)
    const active = { id: `resp_${identity.base62(21)}`, isBeside, stop: new AbortController() }
    this.#active.add(active)
    const run = async (): Promise<void> => {
      const config = mergeJson({ ...this.#json, metadata: null }, params)
      const own = Array.isArray(params['input'])
        ? params['input'].map((item) => readItem(item, this.#newId('item')))
        : undefined
      const items = own ?? this.#items
      const input = {
        text: items.reduce(
          (sum, { counts }) => sum + counts.text,
          countTokens(asText(config['instructions'])),
        ),
        audio: items.reduce((sum, { counts }) => sum + counts.audio, 0),
      }
      const cached = own === undefined ? this.#read : { text: 0, audio: 0 }
      if (own === undefined) this.#read = input
      await this.#socket.writeTurn({
        events: writeRealtime({
          id: active.id,
          itemId: `item_${identity.base62(21)}`,
          conversationId: isBeside ? null : this.#conversationId,
          config,
          topic: items.findLast(({ json, words }) => json['role'] === 'user' && words !== '')?.words ?? '',
          input,
          cached,
          behaviours,
          isCancelled: () => active.stop.signal.aborted,
          addItem: (item) => this.#items.push(item),
        }),
        behaviours,
        pace: requireModel(this.#json['model'], 'v1/realtime', 'realtime').pace,
        interrupt: active.stop.signal,
        errorEvent: { type: 'error', error: { ...chatErrorJson(failureOf('chat', 500)), event_id: null } },
        stamp: this.#stamp,
      })
    }
    const ran = (): Promise<void> =>
      run()
        .catch((error: unknown) => this.refuse(asRefusal(error), event.json))
        .finally(() => this.#active.delete(active))
    // A response that was just cancelled still has to end before this response begins.
    if (isBeside) void ran()
    else this.#turn = this.#turn.then(ran)
  }

  #cancel(id: unknown): void {
    const found = [...this.#active].find(
      (active) => !active.stop.signal.aborted && (id === undefined ? !active.isBeside : active.id === id),
    )
    if (found === undefined) {
      throw new Refusal(400, 'Cancellation failed: no active response found', {
        code: 'response_cancel_not_active',
      })
    }
    found.stop.abort()
  }
}

function modelOf({ url = '' }: IncomingMessage): string {
  return new URLSearchParams(url.slice(url.indexOf('?') + 1)).get('model') ?? ''
}

function newSession(id: string, model: string): JsonObject {
  const format = { type: 'audio/pcm', rate: 24_000 }
  const turn_detection = {
    type: 'server_vad',
    threshold: 0.5,
    create_response: true,
    interrupt_response: true,
  }
  return {
    type: 'realtime',
    object: 'realtime.session',
    id,
    model,
    output_modalities: ['audio'],
    instructions: '',
    tools: [],
    tool_choice: 'auto',
    max_output_tokens: 'inf',
    audio: {
      input: { format, transcription: null, noise_reduction: null, turn_detection },
      output: { format, voice: 'marin', speed: 1 },
    },
  }
}
