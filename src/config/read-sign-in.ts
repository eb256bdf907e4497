import { Secret } from '../kernel/secret.ts'
import type { PersonRole } from '../kernel/vocabulary.ts'

export interface SignInRule {
  /** `*` is everyone. */
  readonly group: string
  readonly role: PersonRole
  /** The id or the name of an account. Operators have none. */
  readonly account?: string | undefined
}

/** How people sign in at the company's identity provider. */
export interface SignInConfig {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: Secret
  /** Without a final slash. */
  readonly dashboardUrl: string
  readonly scopes: readonly string[]
  readonly groupsClaim: string
  readonly emailClaim: string
  readonly allowedDomains: readonly string[]
  readonly rules: readonly SignInRule[]
  readonly sessionMs: number
  /** How long the key of a device can be refreshed after its last refresh. */
  readonly deviceMs: number
  /** What coding agents apply as their managed settings. Null: nothing. */
  readonly managedSettings: ManagedSettings | null
}

export type ManagedSettings = Readonly<Record<string, unknown>>

interface Given {
  readonly signInIssuer: string | null
  readonly signInClientId: string | null
  readonly signInScopes: readonly string[]
  readonly signInGroupsClaim: string
  readonly signInEmailClaim: string
  readonly signInAllowedDomains: readonly string[]
  readonly signInRules: readonly SignInRule[]
  readonly signInSessionHours: number
  readonly signInDeviceDays: number
  readonly signInManagedSettings: ManagedSettings | null
  readonly oidcClientSecret: Secret | null
  readonly dashboardUrl: URL | null
}

/** Settings that only work together. Half of them must not look like a sign-in that is turned on. */
export function readSignIn(given: Given, problems: string[]): SignInConfig | null {
  const { signInIssuer: issuer, signInClientId: clientId, signInRules: rules, oidcClientSecret } = given
  if (issuer === null) {
    if (clientId !== null || rules.length > 0)
      problems.push('"sign_in.issuer" is missing: set it, or remove the other settings of sign_in')
    return null
  }
  const missing = [
    clientId === null ? '"sign_in.client_id"' : '',
    rules.length === 0 ? '"sign_in.rules"' : '',
    given.dashboardUrl === null ? '"dashboard_url"' : '',
    oidcClientSecret === null ? 'TOLLGATE_OIDC_CLIENT_SECRET' : '',
  ].filter((name) => name !== '')
  problems.push(...missing.map((name) => `"sign_in.issuer" needs ${name}: set it`))
  return {
    issuer,
    clientId: clientId ?? '',
    clientSecret: oidcClientSecret ?? new Secret(''),
    dashboardUrl: (given.dashboardUrl?.href ?? '').replace(/\/+$/, ''),
    scopes: given.signInScopes,
    groupsClaim: given.signInGroupsClaim,
    emailClaim: given.signInEmailClaim,
    allowedDomains: given.signInAllowedDomains,
    rules,
    sessionMs: given.signInSessionHours * 3_600_000,
    deviceMs: given.signInDeviceDays * 86_400_000,
    managedSettings: given.signInManagedSettings,
  }
}
