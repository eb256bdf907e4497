import { limits } from '../../kernel/limits.ts'
import type { Usage } from '../../kernel/usage.ts'
import { PCM_BYTES_PER_MS } from '../../metering/audio-clock.ts'
import { audioMs, isAudioDelta, type SessionEvent } from '../../providers/realtime-events.ts'
import { liveSeconds, liveUsage, type Translated, translationUsage } from '../../providers/socket-usage.ts'

/** The models of a session that is paid by the time; of a translation, also those that transcribe its input. */
export interface SessionModels {
  readonly model: string | null
  readonly transcribedBy: readonly (string | null)[]
}

/** Counts the time that a session uses. */
export interface SessionClock {
  /** One object for all sockets of a session; null where a session has one socket only, or while it is not known. */
  readonly session: object | null
  readonly bytesPerMs: number
  /** Audio that was sent, and that upstream has not reported as used yet. */
  readonly unreportedMs: number
  /** The handshake attaches to a session that another socket of this node meters. */
  readonly joinsMeteredSession: boolean
  /** Another socket of this node meters the session now. */
  readonly isMeteredElsewhere: boolean
  /** As much was used as is held for. */
  readonly isDue: boolean
  /** The client has asked for a format of so many bytes. */
  askedFor(bytesPerMs: number): void
  sent(audioBytes: number): void
  observe(event: SessionEvent): void
  /** Takes the usage since the last time; null for none. `isCut`: upstream will report no more. */
  take(models: SessionModels, isCut: boolean): Usage | null
  /** A paused socket sees no events. Another socket of the session may take the metering over, and calls `onTakenOver` then. */
  paused(isPaused: boolean): void
  onTakenOver: () => void
  end(): void
}

const DUE_SECONDS = 60

/** A Live session with a socket on this node. */
interface LiveSession {
  /** The clock of the socket that meters the session. Other sockets see the same figures, and are not billed for them. */
  meteredBy: LiveClock | null
  /** The clock that has stopped to meter the session, until another one does. */
  handedOverBy: LiveClock | null
  settledSeconds: number
  /** The most that upstream has reported to any socket, and the audio that all sockets have sent since. */
  reportedSeconds: number
  sentMs: number
  sockets: number
  /** The session is older than this node has known it: another node may have billed it. */
  readonly mayBeBilledElsewhere: boolean
}

/** The Live sessions of this node. Several sockets may be attached to one, and it is paid for once. */
export class LiveSessions {
  readonly #sessions = new Map<string, LiveSession>()

  join(id: string, mayBeBilledElsewhere: boolean): LiveSession {
    const unused = { settledSeconds: 0, reportedSeconds: 0, sentMs: 0, sockets: 0 }
    const session = this.#sessions.get(id) ?? {
      meteredBy: null,
      handedOverBy: null,
      ...unused,
      mayBeBilledElsewhere,
    }
    session.sockets += 1
    this.#sessions.set(id, session)
    if (this.#sessions.size > limits.liveSessionsMax) this.#forgetOne()
    return session
  }

  isMetered(id: string): boolean {
    return (this.#sessions.get(id)?.meteredBy ?? null) !== null
  }

  #forgetOne(): void {
    for (const [id, { sockets }] of this.#sessions) {
      if (sockets > 0) continue
      this.#sessions.delete(id)
      return
    }
  }
}

/** The clock of a Live session: upstream reports how long the session has lasted. */
export class LiveClock implements SessionClock {
  readonly #sessions: LiveSessions
  readonly #attachedTo: string | null
  #session: LiveSession | null = null
  #seconds = 0
  bytesPerMs = PCM_BYTES_PER_MS
  /** Audio that was sent before the session was known, and audio of upstream since its last report. */
  #sentMs = 0
  #audioOutMs = 0
  #isPaused = false
  /** Upstream has reported a total that cannot be true, or none. */
  #isDoubtful = false
  onTakenOver = () => {}

  /** `attachedTo`: the id of the session in the path of the handshake. Upstream may not show it again. */
  constructor(sessions: LiveSessions, attachedTo: string | null) {
    this.#sessions = sessions
    this.#attachedTo = attachedTo
  }

  get joinsMeteredSession(): boolean {
    return this.#attachedTo !== null && this.#sessions.isMetered(this.#attachedTo)
  }

  get isMeteredElsewhere(): boolean {
    const meteredBy = this.#session?.meteredBy ?? null
    return meteredBy !== null && meteredBy !== this
  }

  get session(): object | null {
    return this.#session
  }

  get unreportedMs(): number {
    return this.#sentMs + (this.#session?.sentMs ?? 0)
  }

  get isDue(): boolean {
    return this.#seconds - this.#settledSeconds >= DUE_SECONDS
  }

  get #settledSeconds(): number {
    return this.#session?.settledSeconds ?? 0
  }

  /** Until upstream shows the format of the audio, the one counts by which it is longer. */
  askedFor(bytesPerMs: number): void {
    this.bytesPerMs = Math.min(this.bytesPerMs, bytesPerMs)
  }

  sent(audioBytes: number): void {
    const ms = audioMs(audioBytes, this.bytesPerMs)
    if (this.#session === null) this.#sentMs += ms
    else this.#session.sentMs += ms
  }

  observe({ session, usage, type, deltaBytes }: SessionEvent): void {
    this.bytesPerMs = session?.bytesPerMs ?? this.bytesPerMs
    const id = this.#attachedTo ?? session?.id
    if (id !== undefined) this.#session ??= this.#sessions.join(id, this.#attachedTo !== null)
    if (this.#session?.meteredBy === null && !this.#isPaused) this.#takeOver(this.#session)
    if (isAudioDelta(type)) this.#audioOutMs += audioMs(deltaBytes, this.bytesPerMs)
    if (type !== 'session.usage.updated' && type !== 'session.closed') return
    const seconds = liveSeconds(usage)
    this.#isDoubtful ||= seconds === null
    if (seconds === null) return
    this.#sentMs = 0
    this.#audioOutMs = 0
    this.#seconds = Math.max(this.#seconds, seconds)
    // A socket that reads late gets reports that others have read already.
    if (this.#session === null || seconds <= this.#session.reportedSeconds) return
    this.#session.reportedSeconds = seconds
    this.#session.sentMs = 0
  }

  take({ model }: SessionModels, isCut: boolean): Usage | null {
    const unreportedMs = Math.max(this.unreportedMs, this.#audioOutMs)
    // Where another socket is left, that one gets the report.
    const isLast = (this.#session?.sockets ?? 1) === 1
    const isEstimated = isCut && isLast && unreportedMs > 0
    const seconds = this.#seconds + (isEstimated ? unreportedMs / 1_000 : 0)
    const settled = this.#settledSeconds
    if (seconds <= settled || this.isMeteredElsewhere) return null
    if (this.#session !== null) this.#session.settledSeconds = seconds
    const used = liveUsage(seconds, settled, model)
    const mayBeBilledTwice = this.#session?.mayBeBilledElsewhere === true && settled === 0
    const isSuspect = isEstimated || mayBeBilledTwice || this.#isDoubtful
    this.#isDoubtful = false
    return isSuspect ? { ...used, suspect: true } : used
  }

  paused(isPaused: boolean): void {
    this.#isPaused = isPaused
    if (!isPaused || this.#session?.meteredBy !== this) return
    this.#session.meteredBy = null
    this.#session.handedOverBy = this
  }

  end(): void {
    this.paused(true)
    const session = this.#session
    if (session === null) return
    if (session.handedOverBy === this) session.handedOverBy = null
    session.sockets -= 1
    // The audio that the last socket has sent is billed by its length.
    if (session.sockets === 0) session.sentMs = 0
  }

  /** The socket that has metered the session is paused, or has ended, and the session goes on. */
  #takeOver(session: LiveSession): void {
    const { handedOverBy } = session
    session.meteredBy = this
    session.handedOverBy = null
    if (handedOverBy !== this) handedOverBy?.onTakenOver()
  }
}

const NOTHING: Translated = { audioInMs: 0, audioOutMs: 0, heardChars: 0, writtenChars: 0 }

/** The clock of a translation: upstream reports nothing, so that what passes is counted. */
export class TranslationClock implements SessionClock {
  readonly joinsMeteredSession = false
  readonly isMeteredElsewhere = false
  readonly session = null
  readonly bytesPerMs = PCM_BYTES_PER_MS
  /** Audio is counted when it is sent. */
  readonly unreportedMs = 0
  #passed = NOTHING

  get isDue(): boolean {
    const { audioInMs, audioOutMs } = this.#passed
    return Math.max(audioInMs, audioOutMs) >= DUE_SECONDS * 1_000
  }

  askedFor(): void {}

  sent(audioBytes: number): void {
    const ms = audioMs(audioBytes, PCM_BYTES_PER_MS)
    this.#passed = { ...this.#passed, audioInMs: this.#passed.audioInMs + ms }
  }

  observe({ type, deltaBytes }: SessionEvent): void {
    const { audioOutMs, heardChars, writtenChars } = this.#passed
    if (isAudioDelta(type))
      this.#passed = { ...this.#passed, audioOutMs: audioOutMs + audioMs(deltaBytes, PCM_BYTES_PER_MS) }
    else if (type.startsWith('session.input_'))
      this.#passed = { ...this.#passed, heardChars: heardChars + deltaBytes }
    else this.#passed = { ...this.#passed, writtenChars: writtenChars + deltaBytes }
  }

  take({ model, transcribedBy }: SessionModels): Usage | null {
    const passed = this.#passed
    if (Object.values(passed).every((amount) => amount === 0)) return null
    this.#passed = NOTHING
    return translationUsage(passed, model, transcribedBy)
  }

  paused(): void {}

  onTakenOver = () => {}

  end(): void {}
}
