import { requireModel } from '../chat/chat-body.ts'
import { isObject, type JsonObject, mergeJson } from '../json.ts'
import type { Pace } from '../pace.ts'
import { asRefusal } from '../refusal.ts'
import { type ClientEvent, type EventSocket, unknownType } from './event-socket.ts'
import { SessionEvents } from './session-events.ts'
import { hear, readAudio, soundPiece } from './spoken-audio.ts'
import { deltaEvent, type TurnEvent, writeTurn } from './write-turn.ts'

const bytesPerSecond = 48_000

/** WS /v1/realtime/translations: each second of sound is answered with its transcript if asked for, a translation, and sound. */
export function serveTranslation(socket: EventSocket): void {
  const events = new SessionEvents(socket)
  try {
    const model = requireModel(socket.handshake.query.get('model'), 'v1/realtime/translations', [
      'translation',
    ])
    const session = new TranslationSession(events, model.id, model.pace)
    socket.listen(session.take, events.refuse)
    events.send('session.created', { session: session.json })
  } catch (error) {
    events.refuseSession(asRefusal(error))
  }
}

class TranslationSession {
  json: JsonObject
  readonly #events: SessionEvents
  readonly #pace: Pace
  #unheardBytes = 0
  #elapsedMs = 0
  #turn: Promise<unknown> = Promise.resolve()

  constructor(events: SessionEvents, model: string, pace: Pace) {
    this.#events = events
    this.#pace = pace
    const audio = { input: { transcription: null, noise_reduction: null }, output: { language: 'en' } }
    this.json = { id: events.newId('sess'), type: 'translation', model, expires_at: events.expiry(), audio }
  }

  readonly take = ({ type, json }: ClientEvent): void => {
    if (type === 'session.update') {
      this.json = mergeJson(this.json, isObject(json['session']) ? json['session'] : {})
      this.#events.send('session.updated', { session: this.json })
    } else if (type === 'session.input_audio_buffer.append') {
      this.#unheardBytes += readAudio(json).length
      while (this.#unheardBytes >= bytesPerSecond) this.#translate(bytesPerSecond)
    } else if (type === 'session.close') {
      if (this.#unheardBytes > 0) this.#translate(this.#unheardBytes)
      this.#turn = this.#turn.then(() => {
        this.#events.send('session.closed')
        this.#events.socket.close(1_000, '')
      })
    } else {
      throw unknownType(type, ['session.update', 'session.input_audio_buffer.append', 'session.close'])
    }
  }

  #translate(bytes: number): void {
    const { socket, stamp } = this.#events
    this.#unheardBytes -= bytes
    this.#elapsedMs += Math.round((bytes / bytesPerSecond) * 1_000)
    const { transcript } = hear(this.#elapsedMs / 1_000)
    const delta = transcript.slice(-16)
    const audio = isObject(this.json['audio']) ? this.json['audio'] : {}
    const isWritten = isObject(audio['input']) && isObject(audio['input']['transcription'])
    const written = (type: string, fields: JsonObject): TurnEvent =>
      deltaEvent(type, { ...fields, elapsed_ms: this.#elapsedMs }, 4)
    const sound = { format: 'pcm16', sample_rate: 24_000, channels: 1 }
    const turn = {
      events: [
        ...(isWritten ? [written('session.input_transcript.delta', { delta })] : []),
        written('session.output_transcript.delta', { delta }),
        written('session.output_audio.delta', { delta: soundPiece(undefined), ...sound }),
      ],
      behaviours: socket.handshake.behaviours,
      pace: { ...this.#pace, firstByteMs: 0 },
      interrupt: socket.signal,
      errorEvent: this.#events.failure(),
      stamp,
    }
    this.#turn = this.#turn.then(() => writeTurn(socket, turn))
  }
}
