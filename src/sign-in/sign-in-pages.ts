import type { SignInConfig } from '../config/read-sign-in.ts'
import { type Exchange, sendWhole } from '../http/exchange.ts'
import { SIGN_IN_PATH, type Target } from '../http/validate-head.ts'
import type { Clock } from '../kernel/clock.ts'
import type { IdSource } from '../kernel/ids.ts'
import type { Log } from '../kernel/log.ts'
import { Secret } from '../kernel/secret.ts'
import type { SignIn } from '../keys/person-store.ts'
import type { DigestKey, SecretSealer } from '../keys/secrets.ts'
import { DEFAULT_ACCOUNT } from '../management/resolve-account.ts'
import { newToken, SESSIONS_MAX, setCookie } from '../management/session.ts'
import type { Store } from '../store/store.ts'
import { attemptCookie, openAttempt, returnPath, sealAttempt } from './attempt-cookie.ts'
import { type Allowed, applyRules, claimAt, type NotAllowed } from './claims.ts'
import { type SignInFailure, sendFailure } from './failure-page.ts'
import { type Identity, type IdentityProvider, type NotIdentified, reasonOf } from './identity-provider.ts'

/** Callbacks that may ask the provider at once. Anyone can send one. */
const ASKING_MAX = 64

export interface SignInDoor {
  readonly settings: SignInConfig
  readonly provider: IdentityProvider
  readonly store: Pick<Store, 'signInPerson' | 'openPersonSession'>
  readonly clock: Clock
  readonly log: Log
  readonly nextUlid: IdSource
  readonly digestKey: DigestKey
  /** Seals the cookie of a sign-in that has begun. */
  readonly cookieSealer: SecretSealer
  /** Seals refresh tokens of the provider. */
  readonly tokenSealer: SecretSealer
  isSecure(exchange: Exchange): boolean
}

/** The two addresses through which people sign in at the identity provider. They need no credential. */
export class SignInPages {
  readonly #door: SignInDoor
  #asking = 0

  constructor(door: SignInDoor) {
    this.#door = door
  }

  async answer(exchange: Exchange, { path, query }: Target): Promise<void> {
    if (exchange.method !== 'GET') return sendFailure(exchange, FAILURES.method, ['allow', 'GET'])
    if (this.#asking >= ASKING_MAX) return sendFailure(exchange, FAILURES.crowded, ['retry-after', '10'])
    this.#asking += 1
    try {
      await (path === SIGN_IN_PATH ? this.#begin(exchange, query) : this.#finish(exchange, query))
    } finally {
      this.#asking -= 1
    }
  }

  async #begin(exchange: Exchange, query: string): Promise<void> {
    const { provider, cookieSealer, clock } = this.#door
    const returnTo = returnPath(new URLSearchParams(query).get('return_to'))
    const begun = await provider.begin().catch((error: unknown) => this.#report(reasonOf(error)))
    if (begun === null) return sendFailure(exchange, FAILURES.provider_failed)
    const sealed = sealAttempt({ ...begun.attempt, returnTo }, cookieSealer, clock.nowMs())
    redirect(exchange, begun.url.href, attemptCookie(sealed, this.#door.isSecure(exchange)))
  }

  /** Whatever the outcome, the attempt is over: the cookie is cleared. */
  async #finish(exchange: Exchange, query: string): Promise<void> {
    const { cookieSealer, clock, provider } = this.#door
    const isSecure = this.#door.isSecure(exchange)
    const cleared = attemptCookie('', isSecure)
    const fail = (why: Why, identity?: Identity) => {
      if (FAILURES[why].status === 403) this.#logRefusal(why, identity)
      return sendFailure(exchange, FAILURES[why], cleared)
    }
    const attempt = openAttempt(exchange.headers, cookieSealer, clock.nowMs())
    const states = new URLSearchParams(query).getAll('state')
    if (attempt === null || states.length !== 1 || states[0] !== attempt.state) return fail('expired')
    const identity = await provider.finish(query, attempt)
    if (identity.kind !== 'identified') return fail(this.#explain(identity))
    const allowed = applyRules(identity.claims, this.#door.settings)
    if (allowed.kind !== 'allowed') return fail(allowed.kind, identity)
    const opened = await this.#openSession(identity, allowed)
    if (opened.kind !== 'opened') return fail(opened.kind, identity)
    const session = setCookie({ isSecure }, opened.token, this.#door.settings.sessionMs / 1_000)
    redirect(exchange, attempt.returnTo, [...cleared, ...session])
  }

  async #openSession(
    { issuer, subject, refreshToken }: Identity,
    { rule, email, name }: Allowed,
  ): Promise<{ kind: 'opened'; token: string } | { kind: 'blocked' | 'other_account' }> {
    const { store, clock, nextUlid, digestKey, tokenSealer, settings } = this.#door
    const atMs = clock.nowMs()
    const { role, account: accountId = DEFAULT_ACCOUNT } = rule
    const signIn: SignIn = {
      newId: `per_${nextUlid()}`,
      issuer,
      subject,
      email,
      name,
      role,
      accountId,
      atMs,
      refreshToken:
        refreshToken === null ? null : tokenSealer.seal(new Secret(refreshToken), `${issuer} ${subject}`),
    }
    const signedIn = await store.signInPerson(signIn)
    if (signedIn.kind !== 'signed_in') return signedIn
    // A token of its own for every sign-in: a cookie that was planted before signs nobody in.
    const { token, digest } = newToken(digestKey)
    const session = { digest, personId: signedIn.person.id, atMs, lifeMs: settings.sessionMs }
    const opened = await store.openPersonSession({ ...session, sessionsMax: SESSIONS_MAX })
    return opened === null ? { kind: 'blocked' } : { kind: 'opened', token }
  }

  #explain(failure: NotIdentified): NotIdentified['kind'] {
    if (failure.kind === 'provider_failed') this.#report(failure.reason)
    return failure.kind
  }

  /** An operator sees here which groups the provider sent. */
  #logRefusal(reason: Why, identity?: Identity): void {
    const { log, settings } = this.#door
    const groups = identity && claimAt(identity.claims, settings.groupsClaim)
    log.info({ subject: identity?.subject, reason, groups }, 'a sign-in was refused')
  }

  #report(reason: string): null {
    const { log, settings } = this.#door
    log.warn({ issuer: settings.issuer, reason }, 'the identity provider did not sign a person in')
    return null
  }
}

function redirect(exchange: Exchange, location: string, cookies: readonly string[]): void {
  const headers = ['location', location, 'content-length', '0', 'cache-control', 'no-store', ...cookies]
  sendWhole(exchange, { status: 302, headers, body: Buffer.alloc(0) })
}

type Why = NotIdentified['kind'] | NotAllowed['kind'] | 'blocked' | 'other_account' | 'method' | 'crowded'

/** The pages say nothing about other people, and nothing that came from the provider. */
const FAILURES: Readonly<Record<Why, SignInFailure>> = {
  expired: {
    status: 400,
    happened: 'This sign-in has expired, was already used, or began in another browser.',
    remedy: 'Sign in again from the dashboard.',
  },
  denied: {
    status: 403,
    happened: 'Your identity provider did not let you in.',
    remedy: 'Ask whoever manages it to assign this application to you.',
  },
  no_rule: {
    status: 403,
    happened: 'None of your groups may use this gateway.',
    remedy: 'Ask for membership in a group that may, and sign in again.',
  },
  no_groups: {
    status: 403,
    happened: 'Your identity provider did not say which groups you are in.',
    remedy: 'Ask the operator of the gateway to check sign_in.groups_claim and the claims of the provider.',
  },
  no_email: {
    status: 403,
    happened: 'Your identity provider did not say whether you have a verified email address.',
    remedy: 'Ask the operator of the gateway to check sign_in.email_claim and the claims of the provider.',
  },
  wrong_domain: {
    status: 403,
    happened: 'Your account has no verified email address in a domain that may use this gateway.',
    remedy: 'Sign in with your company account.',
  },
  blocked: {
    status: 403,
    happened: 'You are blocked on this gateway.',
    remedy: 'Ask an admin of your account to unblock you.',
  },
  other_account: {
    status: 403,
    happened: 'Your groups now belong to another account than before.',
    remedy: 'Ask the operator of the gateway to move you to that account.',
  },
  provider_failed: {
    status: 502,
    happened: 'The identity provider did not answer as expected.',
    remedy: 'Try again in a minute. If it goes on, give the request id below to the operator of the gateway.',
  },
  method: {
    status: 405,
    happened: 'This address is for browsers, which open it with GET.',
    remedy: 'Sign in from the dashboard.',
  },
  crowded: {
    status: 503,
    happened: 'Too many people are signing in at this moment.',
    remedy: 'Try again in ten seconds.',
  },
}
