import type { CallEnd } from '../../http/upstream-call.ts'
import { limits } from '../../kernel/limits.ts'
import type { Usage } from '../../kernel/usage.ts'
import type { SessionEvent, SessionSettings } from '../../providers/realtime-events.ts'
import { transcriptionUsage } from '../../providers/socket-usage.ts'
import type { PlannedCall } from '../call.ts'
import type { Gateway } from '../gateway.ts'
import { AdvanceHold, type Foreseen, goesBy, mayGoBy, type RefusedAdvance } from './advance-hold.ts'
import { Patience } from './patience.ts'
import { RecentIds } from './seen-ids.ts'
import type { TurnCall, TurnSettlements } from './turn-call.ts'

/** What was said and is being written down. */
interface Heard {
  /** Null: nothing could be held for it. */
  readonly turn: TurnCall | null
  /** By which it was begun: one that is named later has no part in it. */
  readonly model: string | null
  /** Null while more of it is heard. */
  ms: number | null
  hasBegun: boolean
  readonly patience: Patience
}

/** What the client has said to be all of it, until upstream says so too. */
interface Commit {
  readonly turn: TurnCall | null
  readonly ms: number
  readonly eventId: string | null
}

interface TranscriptEvents {
  /** Nothing can be held for the next one. */
  onRefused(refused: RefusedAdvance): void
  /** The next one waits for what other calls hold, until it is admitted. */
  onHeld(admitted: Promise<unknown>): void
  /** One is waited for no more. */
  onEnded(): void
}

const NAME = 'conversation.item.input_audio_transcription'

/**
 * What a session has heard is written down by a model of its own, and each piece of it is a call. It has its hold from when it
 * is all there, and nothing of the client's goes before there is one for the next.
 */
export class InputTranscripts {
  readonly advance: AdvanceHold
  readonly #settlements: TurnSettlements
  readonly #onEnded: () => void
  readonly #commits: Commit[] = []
  /** Holds of commits that an error was about, or was said to be. */
  readonly #rejected: TurnCall[] = []
  /** By their items. */
  readonly #expected = new Map<string, Heard>()
  readonly #written = new RecentIds(limits.endedIdsMax)
  /** As upstream shows it. */
  #shown: SessionSettings['transcription']
  #heardMs = 0

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
      isWanted ? { ...foreseenFor(null), isUnnamed: true } : null,
      onRefused,
      onHeld,
    )
  }

  /** That are waited for. */
  get running(): number {
    return [...this.#expected.values()].filter(({ patience }) => !patience.isLost).length
  }

  get open(): number {
    return this.#expected.size
  }

  /** Nothing more is heard before some of it is written down. */
  get isFull(): boolean {
    return this.#expected.size + this.#commits.length >= limits.turnsPerSocketMax
  }

  hear(ms: number): void {
    this.#heardMs += ms
  }

  /** The client's commit has gone. */
  commit(eventId: string | null): void {
    this.#commits.push({ turn: this.advance.take(), ms: this.#takeHeard(), eventId })
    this.advance.renew()
  }

  /** What an update of the session has it wait for; undefined where that is what it waits for already. */
  changedBy({ transcription }: Pick<SessionSettings, 'transcription'>): Foreseen | null | undefined {
    const before = this.advance.foreseen
    if (transcription === undefined) return undefined
    // It goes on until upstream shows that it does not.
    if (transcription === null) return undefined
    if (before === null || before.isUnnamed === true) return foreseenFor(transcription.model)
    const next = transcription.model === null ? before : mayGoBy(before, transcription.model)
    return next === before ? undefined : next
  }

  shown(transcription: SessionSettings['transcription']): void {
    if (transcription === undefined) return
    this.#shown = transcription
    const { foreseen } = this.advance
    if (transcription === null) {
      const isAskedFor = (foreseen?.instead?.length ?? 0) > 0 || this.advance.isChanging
      if (foreseen !== null && !isAskedFor) this.advance.follow(null)
    } else if (foreseen === null || foreseen.model !== transcription.model)
      this.advance.follow(goesBy(foreseen ?? foreseenFor(null), transcription.model))
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
        heard?.patience.renew()
        if (heard !== undefined) heard.hasBegun = true
        else if (!this.#written.has(item)) this.#expect(item, { ms: null, hasBegun: true })
        return
      }
      case `${NAME}.failed`:
        if (event.usage !== null) this.#settle(item, event)
        else {
          this.#giveBack(this.#takeExpected(item)?.turn ?? null)
          this.#onEnded()
        }
        return
      // It is heard, but upstream says nothing more of it.
      case 'conversation.item.deleted':
        if (this.#expected.has(item)) this.#settle(item, event)
        return
      case `${NAME}.completed`:
        this.#settle(item, event)
    }
  }

  /** What upstream has not said to its end is told by its length. */
  end(abandoned: boolean, cut: CallEnd): void {
    const model = this.#goesBy?.model ?? null
    const unanswered = this.#goesBy === null ? [] : this.#commits.splice(0)
    const asked = unanswered.map(({ turn, ms }) => ({ turn, ms, model, hasBegun: false }))
    const expected = [...this.#expected.keys()].flatMap((item) => this.#takeExpected(item) ?? [])
    for (const heard of [...expected, ...asked]) {
      const ms = heard.ms ?? this.#takeHeard()
      if (ms > 0 && (heard.hasBegun || abandoned))
        this.#use(heard.turn, transcriptionUsage(null, heard.model, ms), cut)
      else this.#giveBack(heard.turn)
    }
    for (const { turn } of this.#commits.splice(0)) this.#giveBack(turn)
    for (const turn of this.#rejected.splice(0)) this.#giveBack(turn)
    this.#settlements.add(this.advance.end())
  }

  /** Events come in order, so that what was shown last is what counts. Null: nothing is written down. */
  get #goesBy(): { readonly model: string | null } | null {
    return this.#shown === undefined ? this.advance.foreseen : this.#shown
  }

  #takeHeard(): number {
    const ms = this.#heardMs
    this.#heardMs = 0
    return ms
  }

  #committed(item: string): void {
    const commit = this.#commits.shift() ?? { turn: this.#rejected.shift() ?? null, ms: this.#takeHeard() }
    const known = this.#expected.get(item)
    if (known === undefined && this.#goesBy !== null) {
      this.#expect(item, { ms: commit.ms, hasBegun: false }, commit.turn)
      return
    }
    if (known !== undefined) known.ms = commit.ms
    this.#giveBack(commit.turn)
  }

  #expect(item: string, heard: Pick<Heard, 'ms' | 'hasBegun'>, held: TurnCall | null = null): void {
    const turn = held ?? this.advance.take()
    const patience = new Patience(this.#onEnded)
    this.#expected.set(item, { ...heard, turn, model: this.#goesBy?.model ?? null, patience })
    this.advance.renew()
  }

  #takeExpected(item: string): Heard | undefined {
    const heard = this.#expected.get(item)
    heard?.patience.end()
    this.#expected.delete(item)
    return heard
  }

  /** It may be about another message: what was heard is still there, and the hold for a while. */
  #failed(aboutEventId: string | null): void {
    const at = this.#commits.findIndex(({ eventId }) => eventId === aboutEventId)
    const [commit] = at === -1 ? [] : this.#commits.splice(at, 1)
    if (commit === undefined) return
    this.#heardMs += commit.ms
    const { turn } = commit
    if (turn === null) return
    this.#rejected.push(turn)
    setTimeout(() => {
      const index = this.#rejected.indexOf(turn)
      if (index !== -1) this.#giveBack(this.#rejected.splice(index, 1)[0] ?? null)
    }, limits.silentTurnMs).unref()
  }

  #settle(item: string, { usage }: SessionEvent): void {
    if (this.#written.has(item)) return
    this.#written.add(item)
    const { turn, model, ms } = this.#takeExpected(item) ?? {
      turn: null,
      model: (this.#goesBy ?? this.advance.foreseen)?.model ?? null,
      ms: 0,
    }
    this.#use(turn ?? this.advance.take(), transcriptionUsage(usage, model, ms ?? this.#takeHeard()))
  }

  #use(turn: TurnCall | null, used: Usage, end?: CallEnd): void {
    if (turn !== null) this.advance.renew(this.#settlements.add(turn.endWith(used, end)))
    else this.#settlements.add(this.#useLate(used, end))
  }

  /** Several were said before the first was written down. */
  async #useLate(used: Usage, end?: CallEnd): Promise<void> {
    const turn = await this.advance.takeOrAdmit(foreseenFor(used.modelServed))
    await turn?.endWith(used, end)
    this.advance.renew()
  }

  #giveBack(turn: TurnCall | null): void {
    if (turn !== null && !this.advance.giveBack(turn)) this.#settlements.add(turn.release())
  }
}

function foreseenFor(model: string | null): Foreseen {
  return { kind: 'transcription', model, outputTokensMax: null }
}
