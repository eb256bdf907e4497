import { requireModel } from '../chat/chat-body.ts'
import { chatErrorJson } from '../chat/chat-error.ts'
import { asText, isObject, type JsonObject, mergeJson } from '../json.ts'
import { socketMessageBytesMax } from '../limits.ts'
import { asRefusal, Refusal } from '../refusal.ts'
import { keepResponse, whenLeft } from '../responses/create-response.ts'
import { planResponse } from '../responses/plan-response.ts'
import { writeResponse } from '../responses/stream-response.ts'
import { validateResponse } from '../responses/validate-response.ts'
import { countTokens } from '../tokens.ts'
import { type ClientEvent, type EventSocket, unknownType } from './event-socket.ts'
import { callOf } from './responses-socket.ts'
import { SessionEvents } from './session-events.ts'
import { readAudio, SpeechBuffer, soundPiece, speak, tokensPerPiece } from './spoken-audio.ts'
import { deltaEvent, plainEvent, type TurnEvent, writeTurn } from './write-turn.ts'

interface Command extends ClientEvent {
  /** The members that name the command in events about it. */
  readonly about: JsonObject
  readonly isPrimary: boolean
}

/** A Live session: one socket that speaks and hears, and any number of sockets that look on and may interfere. */
export class LiveSession {
  readonly id: string
  /** The configuration; null until the session was started. */
  json: JsonObject | null = null
  readonly #events: SessionEvents
  readonly #onStart: () => void
  readonly #inherited: JsonObject | undefined
  readonly #sidebands = new Set<SessionEvents>()
  readonly #speech = new SpeechBuffer()
  #isMuted = false
  #secondsTold = 0
  /** Items that the next delegated response reads, after the delegated response before it. */
  #items: unknown[] = []
  #itemsBytes = 0
  #lastResponse: string | undefined
  #turn: Promise<unknown> = Promise.resolve()

  constructor(socket: EventSocket, onStart: (session: LiveSession) => void, inherited?: JsonObject) {
    this.#events = new SessionEvents(socket)
    this.id = this.#events.newId('live')
    this.#onStart = () => onStart(this)
    this.#inherited = inherited
    socket.listen(
      (event) => this.#take(event, this.#events),
      (refusal, about) => refuse(this.#events, refusal, about),
    )
    socket.signal.addEventListener('abort', () => this.#end('connection_lost', {}))
  }

  get isOpen(): boolean {
    return this.json !== null && !this.#events.socket.signal.aborted
  }

  /** Lets another socket look on. */
  attach(socket: EventSocket): void {
    const events = new SessionEvents(socket)
    this.#sidebands.add(events)
    socket.signal.addEventListener('abort', () => this.#sidebands.delete(events))
    socket.listen(
      (event) => this.#take(event, events),
      (refusal, about) => refuse(events, refusal, about),
    )
    events.send('session.started', { session: this.json })
  }

  #take(event: ClientEvent, from: SessionEvents): void {
    const { type, json } = event
    const handle = this.#handlers[type]
    if (handle === undefined) throw unknownType(type, Object.keys(this.#handlers))
    if (this.json === null && type !== 'session.start') {
      throw new Refusal(400, 'Send session.start first.', { code: 'session_not_started' })
    }
    const about = typeof json['event_id'] === 'string' ? { client_event_id: json['event_id'] } : {}
    handle({ ...event, about, isPrimary: from === this.#events })
  }

  readonly #handlers: Record<string, (command: Command) => void> = {
    'session.start': ({ json, about }) => this.#start(json, about),
    'session.update': ({ json, about }) => {
      this.json = mergeJson(this.json ?? {}, isObject(json['session']) ? json['session'] : {})
      this.#tell('session.updated', { session: this.json, ...about })
    },
    'session.input_audio.append': (command) => {
      if (command.isPrimary) this.#hear(readAudio(command.json), command.position)
      else throw new Refusal(400, 'Audio is sent over the primary connection.', { code: 'invalid_event' })
    },
    'session.input_audio.mute': ({ about }) => {
      this.#isMuted = true
      this.#tell('session.input_audio.muted', about)
    },
    'session.input_audio.unmute': ({ about }) => {
      this.#isMuted = false
      this.#tell('session.input_audio.unmuted', about)
    },
    'session.instructions.append': (command) => this.#append(command),
    'session.thinking.append': (command) => this.#append(command),
    'session.commentary.append': (command) => {
      this.#append(command)
      this.#write(() => this.#speak(asText(command.json['content'])))
    },
    'response.item.create': ({ json, bytes }) => {
      this.#requireBackend()
      this.#itemsBytes += bytes.length
      if (this.#itemsBytes > socketMessageBytesMax) throw new Refusal(413, 'Too many items are waiting.')
      this.#items.push(json['item'])
    },
    'response.create': ({ position }) => {
      const backend = this.#requireBackend()
      this.#write(() => this.#delegate(backend, position, null))
    },
    'session.close': ({ about }) => {
      this.#turn = this.#turn.then(() => this.#end('close_requested', about))
    },
  }

  #append({ type, about }: Command): void {
    this.#tell(`${type}ed`, { start_ms: this.#speech.endMs, end_ms: this.#speech.endMs, ...about })
  }

  #start({ session: given }: JsonObject, about: JsonObject): void {
    if (this.json !== null)
      throw new Refusal(400, 'The session has started.', { code: 'session_already_started' })
    const config = isObject(given) ? given : {}
    const merged = this.#inherited === undefined ? config : mergeJson(this.#inherited, config)
    requireModel(merged['model'], 'v1/live/sessions', ['live'])
    const format = { type: 'audio/pcm', rate: 24_000 }
    const base = {
      audio: { format, output: { voice: 'marin' } },
      delegation: null,
      instructions: null,
      store: true,
    }
    const own = { id: this.id, expires_at: this.#events.expiry(), status: 'active' }
    this.json = { ...mergeJson(base, merged), ...own }
    this.#onStart()
    this.#tell('session.started', { session: this.json, ...about })
  }

  #hear(bytes: Buffer, position: number): void {
    const audio = isObject(this.json?.['audio']) ? this.json['audio'] : {}
    this.#speech.append(this.#isMuted ? Buffer.alloc(bytes.length) : bytes, audio['format'])
    for (const sideband of this.#sidebands) {
      void sideband.socket.send({ type: 'session.input_audio.append', audio: bytes.toString('base64') })
    }
    if (this.#speech.isOver) this.#answer(position)
    else if (Math.floor(this.#seconds) > this.#secondsTold) this.#tellUsage()
  }

  /** The user has spoken and is silent: the speech is transcribed, delegated if it can be, and answered aloud. */
  #answer(position: number): void {
    const { transcript, startMs, endMs } = this.#speech.take()
    const delegation = isObject(this.json?.['delegation']) ? this.json['delegation'] : {}
    const target = asText(delegation['type'])
    const written = plainEvent('session.input_transcript.delta', {
      delta: transcript,
      start_ms: startMs,
      end_ms: endMs,
    })
    this.#write(
      () => {
        const events: TurnEvent[] = [written]
        if (target === '') return [...events, ...this.#speak(`I heard: ${transcript}`)]
        const id = this.#events.newId('dlg')
        this.#items.push({ type: 'message', role: 'user', content: transcript })
        const work = target === 'responses' ? this.#delegate(this.#requireBackend(), position, id) : []
        const created = { delegation: { id, target, type: 'delegation' }, offset_ms: endMs }
        return chain(events, [plainEvent('session.delegation.created', created)], work)
      },
      () => this.#tellUsage(),
    )
  }

  /** A response of the backend, its events inside events of the session; then the session speaks. */
  *#delegate(backend: JsonObject, position: number, delegationId: string | null): Generator<TurnEvent> {
    const { socket } = this.#events
    const previous = this.#lastResponse === undefined ? {} : { previous_response_id: this.#lastResponse }
    const body = { ...backend, ...previous, input: this.#items, stream: true }
    this.#items = []
    this.#itemsBytes = 0
    const call = callOf(socket, body, position, socket.handshake.simulation.memory.responses)
    const request = validateResponse(call)
    const plan = planResponse(call, request)
    const stored = keepResponse(call, request, plan, { kind: 'stream' })
    this.#lastResponse = plan.id
    for (const { event, tokens, isDelta } of writeResponse(plan, {
      obfuscates: false,
      onEnd: whenLeft(stored),
    })) {
      yield { event: { type: 'response.event', delegation_id: delegationId, event }, tokens, isDelta }
    }
    const answer = plan.items.map((item) => item.json('completed')).find(({ type }) => type === 'message')
    if (answer !== undefined) yield* this.#speak('Here is what I have found.')
  }

  #speak(text: string): Iterable<TurnEvent> {
    const format = isObject(this.json?.['audio']) ? this.json['audio']['format'] : undefined
    const at = { start_ms: this.#speech.endMs, end_ms: this.#speech.endMs }
    const word = (delta: string): TurnEvent =>
      deltaEvent('session.output_transcript.delta', { delta, ...at }, countTokens(delta))
    const sound = (): TurnEvent =>
      deltaEvent('session.output_audio.delta', { delta: soundPiece(format) }, tokensPerPiece)
    return speak(text, word, sound)
  }

  /** Writes one turn after the other. A turn that cannot be answered is an error event on the primary socket. */
  #write(events: () => Iterable<TurnEvent>, then: () => void = () => undefined): void {
    const { socket } = this.#events
    this.#turn = this.#turn.then(async () => {
      try {
        await writeTurn(socket, {
          events: events(),
          behaviours: socket.handshake.behaviours,
          pace: requireModel(this.json?.['model'], 'v1/live/sessions', ['live']).pace,
          interrupt: socket.signal,
          errorEvent: this.#events.failure(),
          stamp: (event) => this.#mirror(this.#events.stamp(event)),
        })
      } catch (error) {
        refuse(this.#events, asRefusal(error), {})
      }
      then()
    })
  }

  get #seconds(): number {
    return this.#speech.endMs / 1_000
  }

  #tellUsage(): void {
    this.#secondsTold = Math.floor(this.#seconds)
    this.#tell('session.usage.updated', { usage: { seconds: this.#seconds } })
  }

  #tell(type: string, fields: JsonObject): void {
    void this.#events.socket.send(this.#mirror(this.#events.stamp({ type, ...fields })))
  }

  #mirror(event: JsonObject): JsonObject {
    for (const sideband of this.#sidebands) void sideband.socket.send(event)
    return event
  }

  #requireBackend(): JsonObject {
    const delegation = this.json?.['delegation']
    const backend = isObject(delegation) ? delegation['responses'] : undefined
    if (isObject(backend)) return backend
    throw new Refusal(400, 'This session does not delegate to Responses.', {
      code: 'delegation_not_configured',
    })
  }

  #end(reason: string, about: JsonObject): void {
    if (this.json === null) return
    this.#tell('session.closed', { reason, session: this.json, usage: { seconds: this.#seconds }, ...about })
    for (const { socket } of [this.#events, ...this.#sidebands]) socket.close(1_000, '')
  }
}

function refuse(events: SessionEvents, refusal: Refusal, about: JsonObject): void {
  const { code, param, ...error } = chatErrorJson(refusal)
  const id = asText(about['event_id'])
  const client = id === '' ? {} : { client_event_id: id }
  const named = { ...error, code: code ?? 'invalid_request', ...(param === null ? {} : { param }), ...client }
  events.send('error', { error: named, ...client })
}

function* chain<Item>(...lists: readonly Iterable<Item>[]): Generator<Item> {
  for (const list of lists) yield* list
}
