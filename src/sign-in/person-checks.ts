import type { SignInConfig } from '../config/read-sign-in.ts'
import type { Clock } from '../kernel/clock.ts'
import { unlessLate } from '../kernel/deadlines.ts'
import type { Log } from '../kernel/log.ts'
import { Secret } from '../kernel/secret.ts'
import { createWorkLoop } from '../kernel/work-loop.ts'
import type { PersonToCheck } from '../keys/person-store.ts'
import type { SecretSealer } from '../keys/secrets.ts'
import type { Store } from '../store/store.ts'
import { applyRules } from './claims.ts'
import { type IdentityProvider, reasonOf } from './identity-provider.ts'

/** A device is refreshed without asking the provider again within this time. */
const CHECKED_FOR_MS = 3_600_000

/** At most two requests per second. */
const PAUSE_MS = 500
const IDLE_MS = 15_000
const STOP_MS = 1_000

export interface CheckDoor {
  readonly settings: Pick<SignInConfig, 'rules' | 'groupsClaim' | 'emailClaim' | 'allowedDomains'>
  readonly provider: Pick<IdentityProvider, 'refresh'>
  readonly store: Pick<Store, 'claimCheck' | 'claimDueCheck' | 'blockLeaver' | 'replaceRefreshToken'>
  readonly clock: Clock
  readonly log: Log
  readonly node: string
  readonly tokenSealer: SecretSealer
  /** Waiting calls of somebody who was blocked must be refused. */
  recheckWaitingCalls(): void
}

/**
 * Asks the provider whether people still belong to the company, with the refresh token of their last sign-in. Only two
 * answers block: the token is no longer valid, or none of the groups has a rule. Any other answer changes nothing.
 */
export class PersonChecks {
  readonly #door: CheckDoor
  readonly #stopping = new AbortController()
  readonly #loop: ReturnType<typeof createWorkLoop>

  constructor(door: CheckDoor) {
    this.#door = door
    this.#loop = createWorkLoop({
      poll: () => this.#checkNext(),
      onFailure: (error) => {
        door.log.warn({ reason: reasonOf(error) }, 'people could not be checked; retry in a minute')
        return 60_000
      },
      stopping: this.#stopping.signal,
    })
  }

  /** Checks each person with usable keys once a day. */
  start(): void {
    this.#loop.start()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    // A provider may be slow. Nothing is lost if its answer comes too late.
    await unlessLate(this.#loop.ended(), STOP_MS)
  }

  /** Checks the person unless the provider was asked within the hour, by any node. */
  async checkAgain(personId: string): Promise<void> {
    const { store, clock } = this.#door
    const atMs = clock.nowMs()
    const person = await store.claimCheck(personId, atMs - CHECKED_FOR_MS, atMs)
    if (person !== null) await this.#check(person)
  }

  async #checkNext(): Promise<number> {
    const { store, clock, node } = this.#door
    const claimed = await store.claimDueCheck(node, clock.nowMs())
    if (claimed.kind !== 'person') return claimed.kind === 'keyless' ? 0 : IDLE_MS
    await this.#check(claimed.person)
    return PAUSE_MS
  }

  async #check(person: PersonToCheck): Promise<void> {
    const { provider, store, clock, log, settings, tokenSealer, recheckWaitingCalls } = this.#door
    const record = `${person.issuer} ${person.subject}`
    const answer = await provider.refresh(tokenSealer.open(person.refreshToken, record), person.subject)
    if (answer.kind === 'failed') {
      log.warn({ person: person.id, reason: answer.reason }, 'the identity provider did not confirm a person')
      return
    }
    const isKnown = answer.kind === 'confirmed' && applyRules(answer.claims, settings).kind !== 'no_rule'
    if (!isKnown) {
      const isBlocked = await store.blockLeaver(person, clock.nowMs())
      if (isBlocked)
        log.info({ person: person.id }, 'blocked a person whom the identity provider no longer lets in')
      recheckWaitingCalls()
    } else if (answer.kind === 'confirmed' && answer.refreshToken !== null)
      await store.replaceRefreshToken(person, tokenSealer.seal(new Secret(answer.refreshToken), record))
  }
}
