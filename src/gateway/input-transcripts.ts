import type { Usage } from '../kernel/usage.ts'
import type { SessionEvent, SessionSettings } from '../providers/realtime-events.ts'
import { transcriptionUsage } from '../providers/socket-usage.ts'
import { AdvanceHold, type Foreseen, type RefusedAdvance } from './advance-hold.ts'
import type { PlannedCall } from './call.ts'
import type { CallEnd } from './forward.ts'
import type { Gateway } from './gateway.ts'
import type { TurnSettlements } from './turn-settlements.ts'

/** What was said and is being written down. */
interface Heard {
  readonly ms: number
  hasBegun: boolean
}

const NAME = 'conversation.item.input_audio_transcription'

/** Beyond it the oldest are forgotten: upstream says nothing more about them. */
const EXPECTED_MAX = 256

/** What a session has heard is written down by a model of its own, and each piece of it is a call. */
export class InputTranscripts {
  readonly advance: AdvanceHold
  readonly #settlements: TurnSettlements
  /** By their items. */
  readonly #expected = new Map<string, Heard>()
  readonly #written = new Set<string>()
  #heardMs = 0

  constructor(
    handshake: PlannedCall,
    gateway: Gateway,
    settlements: TurnSettlements,
    isWanted: boolean,
    onRefused: (refused: RefusedAdvance) => void,
  ) {
    this.#settlements = settlements
    this.advance = new AdvanceHold(
      handshake,
      gateway,
      isWanted ? { ...foreseenFor(null), isUnnamed: true } : null,
      onRefused,
    )
  }

  get running(): number {
    return this.#expected.size
  }

  hear(ms: number): void {
    this.#heardMs += ms
  }

  /** What an update of the session has it wait for; undefined where that is what it waits for already. */
  changedBy({ transcription }: Pick<SessionSettings, 'transcription'>): Foreseen | null | undefined {
    const before = this.advance.foreseen
    if (transcription === undefined) return undefined
    // It goes on until upstream shows that it does not.
    if (transcription === null) return undefined
    const isChosen = before !== null && before.isUnnamed !== true
    if (transcription.model === null) return isChosen ? undefined : foreseenFor(null)
    return transcription.model === before?.model ? undefined : foreseenFor(transcription.model)
  }

  shown(transcription: SessionSettings['transcription']): void {
    if (transcription === undefined) return
    const { foreseen } = this.advance
    if (transcription === null) {
      if (foreseen !== null) this.advance.follow(null)
    } else if (foreseen === null || foreseen.model !== transcription.model)
      this.advance.follow(foreseenFor(transcription.model))
  }

  observe(event: SessionEvent): void {
    const item = event.itemId ?? ''
    switch (event.type) {
      case 'input_audio_buffer.committed':
        if (this.advance.foreseen !== null) this.#expect(item)
        this.#heardMs = 0
        return
      case `${NAME}.delta`: {
        const heard = this.#expected.get(item)
        if (heard !== undefined) heard.hasBegun = true
        return
      }
      case `${NAME}.failed`:
        if (event.usage === null) this.#expected.delete(item)
        else this.#settle(item, event)
        return
      case `${NAME}.completed`:
        this.#settle(item, event)
    }
  }

  /** What upstream has not said to its end is told by its length. */
  end(abandoned: boolean, cut: CallEnd): void {
    const heard = [...this.#expected.values()].filter(({ hasBegun }) => hasBegun || abandoned)
    const ms = heard.reduce((sum, each) => sum + each.ms, 0)
    const model = this.advance.foreseen?.model ?? null
    this.#expected.clear()
    if (ms > 0) this.#settlements.add(this.#useLate(transcriptionUsage(null, model, ms), cut))
    this.#settlements.add(this.advance.end())
  }

  #expect(item: string): void {
    this.#expected.set(item, { ms: this.#heardMs, hasBegun: false })
    const [oldest] = this.#expected.keys()
    if (this.#expected.size > EXPECTED_MAX && oldest !== undefined) this.#expected.delete(oldest)
  }

  #settle(item: string, { usage }: SessionEvent): void {
    if (this.#written.has(item)) return
    this.#written.add(item)
    const [oldest] = this.#written
    if (this.#written.size > EXPECTED_MAX && oldest !== undefined) this.#written.delete(oldest)
    const ms = this.#expected.get(item)?.ms ?? 0
    this.#expected.delete(item)
    const model = this.advance.foreseen?.model ?? null
    const used = transcriptionUsage(usage, model, ms)
    const turn = this.advance.take()
    if (turn !== null) this.advance.renew(this.#settlements.add(turn.endWith(used)))
    else this.#settlements.add(this.#useLate(used))
  }

  /** Several were said before the first was written down. */
  async #useLate(used: Usage, end?: CallEnd): Promise<void> {
    const turn = await this.advance.takeOrAdmit(foreseenFor(used.modelServed))
    await turn?.endWith(used, end)
    this.advance.renew()
  }
}

function foreseenFor(model: string | null): Foreseen {
  return { kind: 'transcription', model, outputTokensMax: null }
}
