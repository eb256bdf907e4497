import type { CallEnd } from '../../http/upstream-call.ts'
import { limits } from '../../kernel/limits.ts'
import type { Usage } from '../../kernel/usage.ts'
import type { SessionEvent, SessionSettings } from '../../providers/realtime-events.ts'
import { transcriptionUsage } from '../../providers/socket-usage.ts'
import type { PlannedCall } from '../call.ts'
import type { Gateway } from '../gateway.ts'
import { AdvanceHold, type Foreseen, type RefusedHold, withAlternative, withModel } from './advance-hold.ts'
import { RecentIds } from './seen-ids.ts'
import { SilenceTimer } from './silence-timer.ts'
import type { TurnCall, TurnSettlements } from './turn-call.ts'

/** A piece of input audio whose transcript has not come yet. */
interface Expected {
  /** Null: there was no hold for it. */
  readonly turn: TurnCall | null
  /** The model of the session when the transcript was begun. */
  readonly model: string | null
  /** The length of the audio; null while it goes on. */
  ms: number | null
  hasBegun: boolean
  readonly silence: SilenceTimer
}

/** A commit of the client that upstream has not confirmed. */
interface Commit {
  readonly turn: TurnCall | null
  readonly ms: number
  readonly eventId: string | null
}

interface TranscriptEvents {
  /** There can be no hold for the next transcript. */
  onRefused(refused: RefusedHold): void
  /** The hold for the next transcript waits for calls in flight. */
  onHeld(admitted: Promise<unknown>): void
  /** A transcript no longer counts as running. */
  onEnded(): void
}

const NAME = 'conversation.item.input_audio_transcription'

/**
 * The transcripts of a Realtime session's input audio. A model of its own makes them, and each is a call. It takes its hold
 * over when its audio is complete, and messages of the client wait until there is a hold for the next one.
 */
export class InputTranscripts {
  readonly advance: AdvanceHold
  readonly #settlements: TurnSettlements
  readonly #onEnded: () => void
  readonly #commits: Commit[] = []
  /** Holds of commits that an error seems to have ended. */
  readonly #rejected: TurnCall[] = []
  /** By the id of the conversation item. */
  readonly #expected = new Map<string, Expected>()
  /** Items that upstream has confirmed, and those whose transcripts have come, which may be in either order. */
  readonly #committedIds = new RecentIds(limits.endedIdsMax)
  readonly #completedIds = new RecentIds(limits.endedIdsMax)
  /** The transcription that upstream says the session has. */
  #shown: SessionSettings['transcription']
  #audioMs = 0

  constructor(
    handshake: PlannedCall,
    gateway: Gateway,
    settlements: TurnSettlements,
    isWanted: boolean,
    { onRefused, onHeld, onEnded }: TranscriptEvents,
  ) {
    this.#settlements = settlements
    this.#onEnded = onEnded
    this.advance = new AdvanceHold(
      handshake,
      gateway,
      isWanted ? { ...foreseenFor(null), modelComesLater: true } : null,
      onRefused,
      onHeld,
    )
  }

  /** How many are expected to come soon. */
  get running(): number {
    return [...this.#expected.values()].filter(({ silence }) => !silence.hasExpired).length
  }

  get open(): number {
    return this.#expected.size
  }

  /** No more audio is taken before some of the transcripts have come. */
  get isFull(): boolean {
    return this.#expected.size + this.#commits.length >= limits.turnsPerSocketMax
  }

  addAudio(ms: number): void {
    this.#audioMs += ms
  }

  /** The client's `input_audio_buffer.commit` was sent upstream. */
  commit(eventId: string | null): void {
    this.#commits.push({ turn: this.advance.take(), ms: this.#takeAudioMs(), eventId })
    this.advance.renew()
  }

  /** What the hold has to be for with these settings; undefined where it is for that already. */
  changedBy({ transcription }: Pick<SessionSettings, 'transcription'>): Foreseen | null | undefined {
    const before = this.advance.foreseen
    if (transcription === undefined) return undefined
    // Transcripts go on until upstream shows that they do not.
    if (transcription === null) return undefined
    if (before === null || before.modelComesLater === true) return foreseenFor(transcription.model)
    const next = transcription.model === null ? before : withAlternative(before, transcription.model)
    return next === before ? undefined : next
  }

  applyShown(transcription: SessionSettings['transcription']): void {
    if (transcription === undefined) return
    this.#shown = transcription
    const { foreseen } = this.advance
    if (transcription === null) {
      const isRequested = (foreseen?.alternativeModels?.length ?? 0) > 0 || this.advance.isChangeRequested
      if (foreseen !== null && !isRequested) this.advance.applyChange(null)
    } else if (foreseen === null || foreseen.model !== transcription.model)
      this.advance.applyChange(withModel(foreseen ?? foreseenFor(null), transcription.model))
  }

  observe(event: SessionEvent): void {
    const item = event.itemId ?? ''
    switch (event.type) {
      case 'error':
        this.#failed(event.aboutEventId)
        return
      case 'input_audio_buffer.committed':
        this.#committed(item)
        return
      case `${NAME}.delta`: {
        const heard = this.#expected.get(item)
        heard?.silence.restart()
        if (heard !== undefined) heard.hasBegun = true
        else if (!this.#completedIds.has(item)) this.#expect(item, { ms: null, hasBegun: true })
        return
      }
      case `${NAME}.failed`:
        if (event.usage !== null) this.#settle(item, event)
        else {
          this.#giveBack(this.#takeExpected(item)?.turn ?? null)
          this.#onEnded()
        }
        return
      // Upstream says nothing more of a deleted item, whose audio it has heard.
      case 'conversation.item.deleted':
        if (this.#expected.has(item)) this.#settle(item, event)
        return
      case `${NAME}.completed`:
        this.#settle(item, event)
    }
  }

  /** A transcript that has not come to its end is billed by the length of its audio. */
  end(abandoned: boolean, cut: CallEnd): void {
    const model = this.#current?.model ?? null
    const unanswered = this.#current === null ? [] : this.#commits.splice(0)
    const unconfirmed = unanswered.map(({ turn, ms }) => ({ turn, ms, model, hasBegun: false }))
    const expected = [...this.#expected.keys()].flatMap((item) => this.#takeExpected(item) ?? [])
    for (const heard of [...expected, ...unconfirmed]) {
      const ms = heard.ms ?? this.#takeAudioMs()
      if (ms > 0 && (heard.hasBegun || abandoned))
        this.#endWith(heard.turn, transcriptionUsage(null, heard.model, ms), cut)
      else this.#giveBack(heard.turn)
    }
    for (const { turn } of this.#commits.splice(0)) this.#giveBack(turn)
    for (const turn of this.#rejected.splice(0)) this.#giveBack(turn)
    this.#settlements.add(this.advance.end())
  }

  /** The transcription that is in effect. Events come in order, so that what upstream has shown last counts. Null: there is none. */
  get #current(): { readonly model: string | null } | null {
    return this.#shown === undefined ? this.advance.foreseen : this.#shown
  }

  #takeAudioMs(): number {
    const ms = this.#audioMs
    this.#audioMs = 0
    return ms
  }

  #committed(item: string): void {
    if (this.#committedIds.has(item)) return
    if (item !== '') this.#committedIds.add(item)
    const commit = this.#commits.shift() ?? { turn: this.#rejected.shift() ?? null, ms: this.#takeAudioMs() }
    const known = this.#expected.get(item)
    if (known === undefined && this.#current !== null && !this.#completedIds.has(item)) {
      this.#expect(item, { ms: commit.ms, hasBegun: false }, commit.turn)
      return
    }
    if (known !== undefined) known.ms = commit.ms
    this.#giveBack(commit.turn)
  }

  #expect(item: string, heard: Pick<Expected, 'ms' | 'hasBegun'>, held: TurnCall | null = null): void {
    const turn = held ?? this.advance.take()
    const silence = new SilenceTimer(this.#onEnded)
    this.#expected.set(item, { ...heard, turn, model: this.#current?.model ?? null, silence })
    this.advance.renew()
  }

  #takeExpected(item: string): Expected | undefined {
    const heard = this.#expected.get(item)
    heard?.silence.end()
    this.#expected.delete(item)
    return heard
  }

  /** The error may be about another message: the audio counts for the next transcript, and the hold stays for a while. */
  #failed(aboutEventId: string | null): void {
    const at = this.#commits.findIndex(({ eventId }) => eventId === aboutEventId)
    const [commit] = at === -1 ? [] : this.#commits.splice(at, 1)
    if (commit === undefined) return
    this.#audioMs += commit.ms
    const { turn } = commit
    if (turn === null) return
    this.#rejected.push(turn)
    setTimeout(() => {
      const index = this.#rejected.indexOf(turn)
      if (index !== -1) this.#giveBack(this.#rejected.splice(index, 1)[0] ?? null)
    }, limits.silentTurnMs).unref()
  }

  #settle(item: string, { usage }: SessionEvent): void {
    if (this.#completedIds.has(item)) return
    if (item !== '') this.#completedIds.add(item)
    const { turn, model, ms } = this.#takeExpected(item) ?? {
      turn: null,
      model: (this.#current ?? this.advance.foreseen)?.model ?? null,
      ms: 0,
    }
    const heardMs = ms ?? this.#takeAudioMs()
    const used = transcriptionUsage(usage, model, heardMs)
    this.#endWith(turn ?? this.advance.take(), used, undefined, transcriptionUsage(null, model, heardMs))
  }

  /** `estimate`: by the length of the audio, for a usage that cannot be true. */
  #endWith(turn: TurnCall | null, used: Usage, end?: CallEnd, estimate = used): void {
    if (turn !== null) this.advance.renew(this.#settlements.add(turn.endWith(used, end, estimate)))
    else this.#settlements.add(this.#endLate(used, end, estimate))
  }

  /** Several pieces of audio were complete before the first transcript came. */
  async #endLate(used: Usage, end: CallEnd | undefined, estimate: Usage): Promise<void> {
    const turn = await this.advance.takeOrAdmit(foreseenFor(used.modelServed))
    await turn?.endWith(used, end, estimate)
    this.advance.renew()
  }

  #giveBack(turn: TurnCall | null): void {
    if (turn !== null && !this.advance.giveBack(turn)) this.#settlements.add(turn.release())
  }
}

function foreseenFor(model: string | null): Foreseen {
  return { kind: 'transcription', model, outputTokensMax: null }
}
