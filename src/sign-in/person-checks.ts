import type { SignInConfig } from '../config/read-sign-in.ts'
import type { Clock } from '../kernel/clock.ts'
import { unlessLate } from '../kernel/deadlines.ts'
import type { Log } from '../kernel/log.ts'
import { Secret } from '../kernel/secret.ts'
import type { PersonRole } from '../kernel/vocabulary.ts'
import { createWorkLoop } from '../kernel/work-loop.ts'
import type { PersonToCheck } from '../keys/person-store.ts'
import type { SecretSealer } from '../keys/secrets.ts'
import { DEFAULT_ACCOUNT } from '../management/resolve-account.ts'
import type { Store } from '../store/store.ts'
import { applyRules, type Claims } from './claims.ts'
import { type IdentityProvider, reasonOf } from './identity-provider.ts'

/** A device is refreshed without asking the provider again within this time. */
const CHECKED_FOR_MS = 3_600_000

/** At most two requests per second. */
const PAUSE_MS = 500
const IDLE_MS = 15_000
/** As long as the provider may take to answer. */
const STOP_MS = 10_000

export interface CheckDoor {
  readonly settings: Pick<SignInConfig, 'rules' | 'groupsClaim' | 'emailClaim' | 'allowedDomains'>
  readonly provider: Pick<IdentityProvider, 'refresh'>
  readonly store: Pick<Store, 'claimCheck' | 'claimDueCheck' | 'blockLeaver' | 'confirmPerson'>
  readonly clock: Clock
  readonly log: Log
  readonly node: string
  readonly tokenSealer: SecretSealer
  /** Waiting calls of somebody who was blocked must be refused. */
  recheckWaitingCalls(): void
}

/**
 * Asks the provider whether people still belong to the company, with the refresh token of their last sign-in. A person
 * whose token is no longer valid, or whom the rules no longer let into the account, is blocked; a new role is stored.
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
    // The answer may have a new refresh token, in place of one that the provider no longer accepts.
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
    const role = answer.kind === 'confirmed' ? roleOf(person, answer.claims, settings) : 'left'
    if (role === 'left') {
      const isBlocked = await store.blockLeaver(person, clock.nowMs())
      if (isBlocked)
        log.info({ person: person.id }, 'blocked a person whom the identity provider no longer lets in')
      recheckWaitingCalls()
      return
    }
    const token = answer.kind === 'confirmed' ? answer.refreshToken : null
    const sealed = token === null ? null : tokenSealer.seal(new Secret(token), record)
    await store.confirmPerson(person, role, sealed, clock.nowMs())
  }
}

/** A rule for another account is none for this person. Claims that are missing change nothing. */
function roleOf(person: PersonToCheck, claims: Claims, settings: CheckDoor['settings']): PersonRole | 'left' {
  const applied = applyRules(claims, settings)
  if (applied.kind === 'no_groups' || applied.kind === 'no_email') return person.role
  if (applied.kind !== 'allowed') return 'left'
  const { role, account = DEFAULT_ACCOUNT } = applied.rule
  return account === person.accountId ? role : 'left'
}
