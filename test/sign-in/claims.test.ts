import assert from 'node:assert/strict'
import type { SignInRule } from '../../src/config/read-sign-in.ts'
import { applyRules } from '../../src/sign-in/claims.ts'
import { test } from '../support/suite.ts'

const rules: readonly SignInRule[] = [
  { group: 'platform', role: 'operator' },
  { group: '*', role: 'member', account: 'default' },
]
const allowedDomains: readonly string[] = []
const settings = { rules, groupsClaim: 'groups', emailClaim: 'email', allowedDomains }
const outcome = (claims: Readonly<Record<string, unknown>>, over: Partial<typeof settings> = {}) => {
  const applied = applyRules(claims, { ...settings, ...over })
  return applied.kind === 'allowed' ? applied.rule.role : applied.kind
}

test('the first rule with a group of the person decides, and * is everyone', () => {
  assert.equal(outcome({ groups: ['platform'] }), 'operator')
  assert.equal(outcome({ groups: 'platform' }), 'operator')
  assert.equal(outcome({ groups: ['Platform'] }), 'member')
  assert.equal(outcome({ groups: [] }), 'member')
})

test('without groups in the token, only rules that are all for everyone let somebody in', () => {
  assert.equal(outcome({}), 'no_groups')
  assert.equal(outcome({ groups: { platform: true } }), 'no_groups')
  assert.equal(outcome({}, { rules: rules.slice(1) }), 'member')
})

test('a domain counts only for the address that the provider has verified', () => {
  const said = {
    groups: [],
    email: 'a@example.com',
    email_verified: true,
    preferred_username: 'b@example.com',
  }
  const within = { allowedDomains: ['example.com'] }
  assert.equal(outcome(said, within), 'member')
  assert.equal(outcome(said, { ...within, emailClaim: 'preferred_username' }), 'wrong_domain')
  assert.equal(outcome({ ...said, email_verified: false }, within), 'wrong_domain')
  assert.equal(outcome({ ...said, email_verified: undefined }, within), 'no_email')
  assert.equal(outcome({ ...said, email: undefined }, within), 'no_email')
  const only = { groups: [], email_verified: true, mail: { work: 'a@example.com' } }
  assert.equal(outcome(only, { ...within, emailClaim: '/mail/work' }), 'member')
})

test('a claim is found by its name, or by a JSON pointer', () => {
  const at = (groupsClaim: string, claims: Readonly<Record<string, unknown>>) =>
    outcome(claims, { groupsClaim })
  assert.equal(at('https://example.com/groups', { 'https://example.com/groups': ['platform'] }), 'operator')
  assert.equal(at('/realm_access/roles', { realm_access: { roles: ['platform'] } }), 'operator')
  assert.equal(at('/a~1b/~0c', { 'a/b': { '~c': ['platform'] } }), 'operator')
  assert.equal(at('/constructor/name', {}), 'no_groups')
})
