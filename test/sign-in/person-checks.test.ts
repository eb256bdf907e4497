import assert from 'node:assert/strict'
import { systemClock } from '../../src/kernel/clock.ts'
import { createLog } from '../../src/kernel/log.ts'
import { Secret } from '../../src/kernel/secret.ts'
import type { ClaimedCheck, PersonToCheck } from '../../src/keys/person-store.ts'
import { createSecretSealer } from '../../src/keys/secrets.ts'
import { PersonChecks } from '../../src/sign-in/person-checks.ts'
import { test } from '../support/suite.ts'
import { settingsOf } from './played-people.ts'

const sealer = createSecretSealer(new Secret('a pepper of sixteen'), 'refresh tokens')
const issuer = 'https://login.example'

const personToCheck = (name: string): PersonToCheck => ({
  ...{ id: `per_${name}`, accountId: 'default', email: '', role: 'member', issuer, subject: name },
  refreshToken: sealer.seal(new Secret(`token of ${name}`), `${issuer} ${name}`),
})

test('whoever is due is asked about, one after the other, and only leavers are blocked', async () => {
  const due: ClaimedCheck[] = [
    { kind: 'person', person: personToCheck('stays') },
    { kind: 'keyless' },
    { kind: 'person', person: { ...personToCheck('promoted'), role: 'viewer' } },
    { kind: 'person', person: { ...personToCheck('moved'), accountId: 'search' } },
    { kind: 'person', person: personToCheck('left') },
  ]
  const blocked: string[] = []
  const roles: string[] = []
  const isDone = Promise.withResolvers<void>()
  const asked: string[] = []
  const replaced: string[] = []
  let asking = 0
  const checks = new PersonChecks({
    settings: settingsOf({ issuer }),
    provider: {
      async refresh(token, subject) {
        assert.equal(++asking, 1, 'two requests at once')
        asked.push(`${subject}: ${token.reveal()}`)
        await new Promise((resolve) => setImmediate(resolve))
        asking -= 1
        if (subject === 'left') return { kind: 'unknown' }
        const claims = { email: 'a@example.com', email_verified: true, groups: ['developers'] }
        return { kind: 'confirmed', claims, refreshToken: 'next' }
      },
    },
    store: {
      claimDueCheck: async () => due.shift() ?? { kind: 'nobody' },
      claimCheck: async () => null,
      async blockLeaver({ id }) {
        blocked.push(id)
        if (due.length === 0) isDone.resolve()
        return true
      },
      async updateCheckedRole({ id }, role) {
        roles.push(`${id}: ${role}`)
      },
      async replaceRefreshToken(person, next) {
        replaced.push(sealer.open(next, `${issuer} ${person.subject}`).reveal())
      },
    },
    clock: systemClock,
    log: createLog('silent'),
    node: 'a',
    tokenSealer: sealer,
    recheckWaitingCalls() {},
  })
  checks.start()
  // The timers of the checks do not keep the process alive.
  const alive = setInterval(() => {}, 1_000)
  await isDone.promise
  clearInterval(alive)
  await checks.stop()
  assert.deepEqual(blocked, ['per_moved', 'per_left'], 'a rule for another account is none')
  assert.deepEqual(roles, ['per_promoted: member'])
  const names = ['stays', 'promoted', 'moved', 'left']
  assert.deepEqual(
    asked,
    names.map((name) => `${name}: token of ${name}`),
  )
  assert.deepEqual(replaced, ['next', 'next'])
})
