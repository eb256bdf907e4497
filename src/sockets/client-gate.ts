import { TOO_MANY_TURNS } from '../calls/refusals.ts'
import { limits } from '../kernel/limits.ts'
import { unreadable } from '../providers/ambiguity.ts'
import type { Message } from './frames.ts'
import { NO_LANE } from './lanes.ts'
import type {
  ClientIntent,
  ModelCheck,
  RefusedIntent,
  RequestedTurn,
  SocketProtocol,
  Verdict,
} from './socket-protocol.ts'
import type { SocketTurns } from './socket-turns.ts'
import type { TurnAdmission, UnadmittedTurn } from './turn-admission.ts'

const PASS: Verdict = { kind: 'pass' }
const DROPPED: Verdict = { kind: 'dropped' }

/** Decides whether a client's messages may go upstream. */
export class ClientGate {
  readonly #turns: SocketTurns
  readonly #protocol: SocketProtocol
  readonly #admission: TurnAdmission

  constructor(turns: SocketTurns) {
    this.#turns = turns
    this.#protocol = turns.parts.protocol
    this.#admission = turns.parts.admission
  }

  /** Call it for one message at a time. */
  async check(message: Message): Promise<Verdict> {
    if (message.kind !== 'message')
      return this.#refuse(this.#protocol.refused(unreadable(message.why).detail))
    const { payload } = message
    const intent = await this.#protocol.readClient(payload)
    await this.#turns.ready()
    if (this.#turns.isOver) return DROPPED
    if (intent.kind === 'refused') return this.#refuse(intent)
    const checked = intent.check === null ? PASS : await this.#checkModels(intent.check)
    if (checked.kind !== 'pass' || intent.kind === 'pass') return checked
    return await this.#admit(intent, payload)
  }

  #refuse({ planned, refusal, lane, tag }: Omit<RefusedIntent, 'kind'>): Verdict {
    return verdictOn(this.#admission.refuse(planned, refusal), { lane, tag })
  }

  async #checkModels({ planned, limited, tag }: ModelCheck): Promise<Verdict> {
    const checked = await this.#admission.check(planned)
    if (checked.kind !== 'refused') return checked.kind === 'permitted' ? PASS : DROPPED
    const isLimited = limited !== null && checked.refusal.code === 'endpoint_not_metered'
    return this.#refuse({ planned, refusal: isLimited ? limited : checked.refusal, lane: NO_LANE, tag })
  }

  async #admit(intent: ClientIntent & { readonly kind: 'begins' }, payload: Buffer): Promise<Verdict> {
    if (this.#turns.count >= limits.turnsPerSocketMax)
      return this.#refuse({ ...intent, refusal: TOO_MANY_TURNS })
    const admitted = await this.#turns.admit(intent.planned)
    if (admitted.kind !== 'admitted') return verdictOn(admitted, intent)
    return {
      kind: 'pass',
      sent: () => this.#turns.sent(admitted.turn, intent, payload),
      unsent: () => this.#turns.unsent(admitted.turn),
    }
  }
}

function verdictOn(unadmitted: UnadmittedTurn, { lane, tag }: Pick<RequestedTurn, 'lane' | 'tag'>): Verdict {
  if (unadmitted.kind !== 'refused') return DROPPED
  const { refusal, requestId } = unadmitted
  return { kind: 'refused', refusal, about: { requestId, lane, tag } }
}
