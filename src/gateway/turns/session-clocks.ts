import { limits } from '../../kernel/limits.ts'
import type { Usage } from '../../kernel/usage.ts'
import { PCM_BYTES_PER_MS } from '../../metering/audio-clock.ts'
import { isSound, type SessionEvent, soundMs } from '../../providers/realtime-events.ts'
import { liveUsage, type Translated, translationUsage } from '../../providers/socket-usage.ts'

/** What a session goes by; of a translation, also what writes down what is heard. */
export interface SessionModels {
  readonly model: string | null
  readonly transcribedBy: readonly (string | null)[]
}

/** Counts what a session uses by the time. */
export interface SessionClock {
  /** The same for all sockets of a session; null where there is but one, or while it is not known. */
  readonly session: object | null
  readonly bytesPerMs: number
  /** What was sent and is not counted yet. */
  readonly untoldMs: number
  /** The session that is being attached to is metered by another socket of this node. */
  readonly isMeteredHere: boolean
  /** It is billed elsewhere. */
  readonly isIdle: boolean
  /** As much was used as is paid for in advance. */
  readonly isDue: boolean
  sent(audioBytes: number): void
  said(event: SessionEvent): void
  /** What was used since it was last asked for; null for nothing. `isCut`: upstream will say no more. */
  take(models: SessionModels, isCut: boolean): Usage | null
  /** This socket sees nothing until it is resumed: another one that does may count, and `takenOver` is called when it does. */
  paused(isPaused: boolean): void
  takenOver: () => void
  end(): void
}

const DUE_SECONDS = 60

/** A Live session that was seen here. */
interface LiveSession {
  /** The socket by which it is metered. Others that look on see the same figures, and are not billed for them. */
  meteredBy: LiveClock | null
  /** The one that has handed it over, until another one meters it. */
  leftBy: LiveClock | null
  settledSeconds: number
  /** The most that upstream has told, and what was sent since, by whichever of its sockets. */
  toldSeconds: number
  sentMs: number
  sockets: number
  /** Maybe it was paid for on another node, or before this one was started. */
  readonly isOlder: boolean
}

/** The Live sessions of this node. Several sockets may be attached to one, and it is paid for once. */
export class LiveSessions {
  readonly #sessions = new Map<string, LiveSession>()

  join(id: string, isOlder: boolean): LiveSession {
    const unused = { settledSeconds: 0, toldSeconds: 0, sentMs: 0, sockets: 0 }
    const session = this.#sessions.get(id) ?? { meteredBy: null, leftBy: null, ...unused, isOlder }
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

/** Upstream tells how long a Live session has lasted. */
export class LiveClock implements SessionClock {
  readonly #sessions: LiveSessions
  readonly #attachedTo: string | null
  #session: LiveSession | null = null
  #seconds = 0
  bytesPerMs = PCM_BYTES_PER_MS
  /** What was sent before the session was known, and what was said since upstream has last told. */
  #sentMs = 0
  #saidMs = 0
  #isPaused = false
  takenOver = () => {}

  /** `attachedTo`: the session that has begun before. It may not be shown again. */
  constructor(sessions: LiveSessions, attachedTo: string | null) {
    this.#sessions = sessions
    this.#attachedTo = attachedTo
  }

  get isMeteredHere(): boolean {
    return this.#attachedTo !== null && this.#sessions.isMetered(this.#attachedTo)
  }

  get isIdle(): boolean {
    const meteredBy = this.#session?.meteredBy ?? null
    return meteredBy !== null && meteredBy !== this
  }

  get session(): object | null {
    return this.#session
  }

  get untoldMs(): number {
    return this.#sentMs + (this.#session?.sentMs ?? 0)
  }

  get isDue(): boolean {
    return this.#seconds - this.#settledSeconds >= DUE_SECONDS
  }

  get #settledSeconds(): number {
    return this.#session?.settledSeconds ?? 0
  }

  sent(audioBytes: number): void {
    const ms = soundMs(audioBytes, this.bytesPerMs)
    if (this.#session === null) this.#sentMs += ms
    else this.#session.sentMs += ms
  }

  said({ session, usage, type, deltaBytes }: SessionEvent): void {
    this.bytesPerMs = session?.bytesPerMs ?? this.bytesPerMs
    const id = this.#attachedTo ?? session?.id
    if (id !== undefined) this.#session ??= this.#sessions.join(id, this.#attachedTo !== null)
    if (this.#session?.meteredBy === null && !this.#isPaused) this.#takeOver(this.#session)
    if (isSound(type)) this.#saidMs += soundMs(deltaBytes, this.bytesPerMs)
    if (type !== 'session.usage.updated' && type !== 'session.closed') return
    this.#sentMs = 0
    this.#saidMs = 0
    const seconds = (usage as { readonly seconds?: unknown } | null)?.seconds
    if (typeof seconds !== 'number') return
    this.#seconds = Math.max(this.#seconds, seconds)
    // A socket that reads late is told what others know.
    if (this.#session === null || seconds <= this.#session.toldSeconds) return
    this.#session.toldSeconds = seconds
    this.#session.sentMs = 0
  }

  take({ model }: SessionModels, isCut: boolean): Usage | null {
    const untoldMs = Math.max(this.untoldMs, this.#saidMs)
    // Another of its sockets will be told.
    const isLast = (this.#session?.sockets ?? 1) === 1
    const isGuessed = isCut && isLast && untoldMs > 0
    const seconds = this.#seconds + (isGuessed ? untoldMs / 1_000 : 0)
    const settled = this.#settledSeconds
    if (seconds <= settled || this.isIdle) return null
    if (this.#session !== null) this.#session.settledSeconds = seconds
    const used = liveUsage(seconds, settled, model)
    const mayBePaid = this.#session?.isOlder === true && settled === 0
    return isGuessed || mayBePaid ? { ...used, suspect: true } : used
  }

  paused(isPaused: boolean): void {
    this.#isPaused = isPaused
    if (!isPaused || this.#session?.meteredBy !== this) return
    this.#session.meteredBy = null
    this.#session.leftBy = this
  }

  end(): void {
    this.paused(true)
    const session = this.#session
    if (session === null) return
    if (session.leftBy === this) session.leftBy = null
    session.sockets -= 1
    // What the last of them has sent is paid for by its length.
    if (session.sockets === 0) session.sentMs = 0
  }

  /** Whoever has metered it sees nothing, or has left, and the session goes on. */
  #takeOver(session: LiveSession): void {
    const { leftBy } = session
    session.meteredBy = this
    session.leftBy = null
    if (leftBy !== this) leftBy?.takenOver()
  }
}

const NOTHING: Translated = { audioInMs: 0, audioOutMs: 0, heardChars: 0, writtenChars: 0 }

/** Nothing tells what a translation has used but what passed. */
export class TranslationClock implements SessionClock {
  readonly isMeteredHere = false
  readonly isIdle = false
  readonly session = null
  readonly bytesPerMs = PCM_BYTES_PER_MS
  /** It is counted when it is sent. */
  readonly untoldMs = 0
  #passed = NOTHING

  get isDue(): boolean {
    const { audioInMs, audioOutMs } = this.#passed
    return Math.max(audioInMs, audioOutMs) >= DUE_SECONDS * 1_000
  }

  sent(audioBytes: number): void {
    const ms = soundMs(audioBytes, PCM_BYTES_PER_MS)
    this.#passed = { ...this.#passed, audioInMs: this.#passed.audioInMs + ms }
  }

  said({ type, deltaBytes }: SessionEvent): void {
    const { audioOutMs, heardChars, writtenChars } = this.#passed
    if (isSound(type))
      this.#passed = { ...this.#passed, audioOutMs: audioOutMs + soundMs(deltaBytes, PCM_BYTES_PER_MS) }
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

  takenOver = () => {}

  end(): void {}
}
