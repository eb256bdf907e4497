import { REAL_UPSTREAM } from '../config/simulator.ts'
import type { Store } from '../store/store.ts'
import type { ObserveCall } from '../telemetry/call-log.ts'

/** Whether a real upstream has answered a call of this database. From then on, the simulator must not make up answers. */
export class RealUpstream {
  readonly #store: Pick<Store, 'getOrCreateSetting'>
  readonly #simulators: ReadonlySet<string>
  #hasAnswered: boolean

  private constructor(
    store: Pick<Store, 'getOrCreateSetting'>,
    simulators: ReadonlySet<string>,
    hasAnswered: boolean,
  ) {
    this.#store = store
    this.#simulators = simulators
    this.#hasAnswered = hasAnswered
  }

  /** `simulators`: the origins of the simulated upstreams. */
  static async read(
    store: Pick<Store, 'getOrCreateSetting' | 'readSetting'>,
    simulators: ReadonlySet<string>,
  ): Promise<RealUpstream> {
    return new RealUpstream(store, simulators, (await store.readSetting(REAL_UPSTREAM)) !== null)
  }

  get hasAnswered(): boolean {
    return this.#hasAnswered
  }

  readonly observe: ObserveCall = ({ status, upstream }) => {
    if (this.#hasAnswered || status === null || upstream === null) return
    if (this.#simulators.has(upstream.origin)) return
    this.#hasAnswered = true
    this.#store.getOrCreateSetting(REAL_UPSTREAM, 'yes').catch(() => {
      // The next call tries again.
      this.#hasAnswered = false
    })
  }
}
