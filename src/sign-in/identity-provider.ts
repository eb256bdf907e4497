import * as oidc from 'openid-client'
import type { SignInConfig } from '../config/read-sign-in.ts'
import type { EgressRules } from '../http/egress.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Secret } from '../kernel/secret.ts'
import { type Claims, hasNeededClaims } from './claims.ts'
import { providerFetch } from './provider-fetch.ts'

/** The provider's endpoints are read again after this time. Its keys are read again when a token names an unknown one. */
const DISCOVERED_FOR_MS = 3_600_000

/** What ties a callback to the browser that began. */
export interface Attempt {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
}

export interface Identity {
  readonly kind: 'identified'
  readonly issuer: string
  readonly subject: string
  readonly claims: Claims
  /** Null: the provider gave none. */
  readonly refreshToken: string | null
}

/** `expired`: the code or the nonce does not belong to this attempt, or was used. `denied`: the provider refused the person. */
export type NotIdentified =
  | { readonly kind: 'expired' | 'denied' }
  | { readonly kind: 'provider_failed'; readonly reason: string }

/** What the provider says of somebody who signed in before. `unknown`: it does not accept the refresh token any more. */
export type Confirmation =
  | { readonly kind: 'confirmed'; readonly claims: Claims; readonly refreshToken: string | null }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'failed'; readonly reason: string }

/** The company's OpenID Connect provider. Nothing is asked of it before the first sign-in. */
export class IdentityProvider {
  readonly #settings: SignInConfig
  readonly #egress: EgressRules
  readonly #clock: Clock
  #found: { readonly atMs: number; readonly configuration: Promise<oidc.Configuration> } | null = null

  constructor(settings: SignInConfig, egress: EgressRules, clock: Clock) {
    this.#settings = settings
    this.#egress = egress
    this.#clock = clock
  }

  /** The address of the provider's page, and what the callback must bring back. Throws if the provider does not answer. */
  async begin(): Promise<{ readonly url: URL; readonly attempt: Attempt }> {
    const configuration = await this.#discover()
    const attempt = {
      state: oidc.randomState(),
      nonce: oidc.randomNonce(),
      verifier: oidc.randomPKCECodeVerifier(),
    }
    const url = oidc.buildAuthorizationUrl(configuration, {
      redirect_uri: this.#redirectUri,
      scope: this.#settings.scopes.join(' '),
      state: attempt.state,
      nonce: attempt.nonce,
      code_challenge: await oidc.calculatePKCECodeChallenge(attempt.verifier),
      code_challenge_method: 'S256',
    })
    return { url, attempt }
  }

  /** Exchanges the code of a callback. `query`: what the provider added to the address, with its question mark. */
  async finish(query: string, { state, nonce, verifier }: Attempt): Promise<Identity | NotIdentified> {
    try {
      const configuration = await this.#discover()
      const tokens = await oidc.authorizationCodeGrant(configuration, new URL(this.#redirectUri + query), {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      })
      const claims = tokens.claims()
      if (claims === undefined) return { kind: 'provider_failed', reason: 'the answer has no ID token' }
      return {
        kind: 'identified',
        issuer: claims.iss,
        subject: claims.sub,
        claims: await this.#complete(configuration, tokens.access_token, claims),
        refreshToken: tokens.refresh_token ?? null,
      }
    } catch (error) {
      return explainFailure(error)
    }
  }

  /** Asks again about a person who has signed in before. Never throws. */
  async refresh(refreshToken: Secret, subject: string): Promise<Confirmation> {
    try {
      const configuration = await this.#discover()
      const tokens = await oidc.refreshTokenGrant(configuration, refreshToken.reveal())
      const claims: Claims = tokens.claims() ?? { sub: subject }
      if (claims['sub'] !== subject) return { kind: 'failed', reason: 'the answer is about another person' }
      return {
        kind: 'confirmed',
        claims: await this.#complete(configuration, tokens.access_token, { ...claims, sub: subject }),
        refreshToken: tokens.refresh_token ?? null,
      }
    } catch (error) {
      if (error instanceof oidc.ResponseBodyError && error.error === 'invalid_grant')
        return { kind: 'unknown' }
      return { kind: 'failed', reason: reasonOf(error) }
    }
  }

  /** Where a person ends the session at the provider too. Null: the provider has no such page. */
  async endSessionUrl(): Promise<string | null> {
    const configuration = await this.#discover()
    if (configuration.serverMetadata().end_session_endpoint === undefined) return null
    const { dashboardUrl } = this.#settings
    return oidc.buildEndSessionUrl(configuration, { post_logout_redirect_uri: `${dashboardUrl}/dashboard` })
      .href
  }

  get #redirectUri(): string {
    return `${this.#settings.dashboardUrl}/gateway/sign-in/callback`
  }

  /** OpenID Connect lets a provider keep claims out of the token, and answer them at its user info endpoint. */
  async #complete(
    configuration: oidc.Configuration,
    accessToken: string,
    claims: Claims & { readonly sub: string },
  ): Promise<Claims> {
    const hasUserInfo = configuration.serverMetadata().userinfo_endpoint !== undefined
    if (!hasUserInfo || hasNeededClaims(claims, this.#settings)) return claims
    return { ...(await oidc.fetchUserInfo(configuration, accessToken, claims.sub)), ...claims }
  }

  /** A failed discovery is not kept: the next sign-in tries again. */
  #discover(): Promise<oidc.Configuration> {
    const atMs = this.#clock.nowMs()
    if (this.#found !== null && atMs - this.#found.atMs < DISCOVERED_FOR_MS) return this.#found.configuration
    const found = { atMs, configuration: this.#askProvider() }
    this.#found = found
    found.configuration.catch(() => {
      if (this.#found === found) this.#found = null
    })
    return found.configuration
  }

  #askProvider(): Promise<oidc.Configuration> {
    const { issuer, clientId, clientSecret } = this.#settings
    const url = new URL(issuer)
    const secret = clientSecret.reveal()
    const [basic, post] = [oidc.ClientSecretBasic(secret), oidc.ClientSecretPost(secret)]
    // A provider that does not say how clients authenticate expects Basic.
    const authenticate: oidc.ClientAuth = (server, ...request) => {
      const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
      const chosen = methods.includes('client_secret_basic') ? basic : post
      return chosen(server, ...request)
    }
    return oidc.discovery(url, clientId, {}, authenticate, {
      [oidc.customFetch]: providerFetch(this.#egress),
      execute: [
        oidc.enableNonRepudiationChecks,
        ...(url.protocol === 'http:' ? [oidc.allowInsecureRequests] : []),
      ],
    })
  }
}

function explainFailure(error: unknown): NotIdentified {
  if (error instanceof oidc.AuthorizationResponseError)
    return error.error === 'access_denied'
      ? { kind: 'denied' }
      : failed(`the provider answered ${error.error}`)
  // A code that was used, or has expired.
  if (error instanceof oidc.ResponseBodyError)
    return error.error === 'invalid_grant'
      ? { kind: 'expired' }
      : failed(`the provider answered ${error.error}`)
  if (claimOf(error) === 'nonce') return { kind: 'expired' }
  return failed(reasonOf(error))
}

const failed = (reason: string) => ({ kind: 'provider_failed', reason }) as const

/** The claim of the ID token that is not as expected. The library reports it in the causes. */
function claimOf(error: unknown): unknown {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { cause: detail } = cause
    if (typeof detail === 'object' && detail !== null && 'claim' in detail) return detail.claim
  }
  return undefined
}

/** The messages of an error and its causes, without the tokens that the library attaches. */
export function reasonOf(error: unknown): string {
  const messages: string[] = []
  for (let cause = error; cause instanceof Error; cause = cause.cause) messages.push(cause.message)
  return messages.join(': ')
}
