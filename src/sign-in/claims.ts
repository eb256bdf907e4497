import type { SignInConfig, SignInRule } from '../config/read-sign-in.ts'

/** What the provider says of a person. */
export type Claims = Readonly<Record<string, unknown>>

export interface Allowed {
  readonly kind: 'allowed'
  readonly rule: SignInRule
  readonly email: string
  readonly name: string
}

/** Why somebody with a valid token does not get in. */
export type NotAllowed = { readonly kind: 'no_rule' | 'no_groups' | 'no_email' | 'wrong_domain' }

type ClaimRules = Pick<SignInConfig, 'rules' | 'groupsClaim' | 'emailClaim' | 'allowedDomains'>

/** The first rule with a group of the person decides. Without any groups in the token, only rules for everyone count. */
export function applyRules(claims: Claims, settings: ClaimRules): Allowed | NotAllowed {
  const { rules, groupsClaim, emailClaim } = settings
  const email = textOf(claimAt(claims, emailClaim))
  if (settings.allowedDomains.length > 0) {
    // Without these claims the provider says nothing of the address: nobody gets in, and nobody is blocked.
    const said = [claimAt(claims, emailClaim), claims['email_verified']]
    if (said.includes(undefined)) return { kind: 'no_email' }
    if (!isInDomains(email, claims, settings)) return { kind: 'wrong_domain' }
  }
  const groups = groupsOf(claimAt(claims, groupsClaim))
  if (groups === null && rules.some(({ group }) => group !== '*')) return { kind: 'no_groups' }
  const rule = rules.find(({ group }) => group === '*' || groups?.includes(group) === true)
  if (rule === undefined) return { kind: 'no_rule' }
  return { kind: 'allowed', rule, email, name: textOf(claims['name']) }
}

/** Whether the token has all claims that the rules read. Some providers have them only at another endpoint. */
export function hasNeededClaims(claims: Claims, { rules, groupsClaim, emailClaim }: ClaimRules): boolean {
  const needsGroups = rules.some(({ group }) => group !== '*')
  if (needsGroups && claimAt(claims, groupsClaim) === undefined) return false
  return claimAt(claims, emailClaim) !== undefined
}

function isInDomains(email: string, claims: Claims, { allowedDomains }: ClaimRules): boolean {
  const domain = email.slice(email.lastIndexOf('@') + 1).toLowerCase()
  const isAllowed = allowedDomains.some((allowed) => allowed.toLowerCase() === domain)
  // `email_verified` speaks of `email`, if there is one. People can choose other claims themselves.
  const { email: verified = email } = claims
  const isVerified = claims['email_verified'] === true && verified === email
  return email.includes('@') && isAllowed && isVerified
}

/** Null: the token does not say. One group may come as a text. */
function groupsOf(claim: unknown): readonly unknown[] | null {
  if (typeof claim === 'string') return [claim]
  return Array.isArray(claim) ? claim : null
}

/** `where`: the name of a claim, or a JSON pointer, which begins with a slash. */
export function claimAt(claims: Claims, where: string): unknown {
  if (!where.startsWith('/')) return memberOf(claims, where)
  const names = where.slice(1).split('/')
  return names
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>((value, name) => memberOf(value, name), claims)
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
  return (value as Record<string, unknown>)[name]
}

function textOf(claim: unknown): string {
  return typeof claim === 'string' ? claim : ''
}
