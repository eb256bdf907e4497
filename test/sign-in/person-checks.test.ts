import assert from 'node:assert/strict'
import { systemClock } from '../../src/kernel/clock.ts'
import { createUlidSource } from '../../src/kernel/ids.ts'
import { createLog } from '../../src/kernel/log.ts'
import { Secret } from '../../src/kernel/secret.ts'
import type { ClaimedCheck, PersonToCheck } from '../../src/keys/person-store.ts'
import { createSecretSealer } from '../../src/keys/secrets.ts'
import { type CheckDoor, PersonChecks } from '../../src/sign-in/person-checks.ts'
import { nextCheckMs } from '../../src/store/operations/check-time.ts'
import { test } from '../support/suite.ts'
import { settingsOf } from './played-people.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const sealer = createSecretSealer(new Secret('a pepper of sixteen'), 'refresh tokens')
const issuer = 'https://login.example'

const personToCheck = (name: string): PersonToCheck => ({
  ...{ id: `per_${name}`, accountId: 'default', email: '', role: 'member', issuer, subject: name },
  refreshToken: sealer.seal(new Secret(`token of ${name}`), `${issuer} ${name}`),
})

function createChecks(provider: CheckDoor['provider'], store: Partial<CheckDoor['store']>): PersonChecks {
  return new PersonChecks({
    settings: settingsOf({ issuer }),
    provider,
    store: {
      claimDueCheck: async () => ({ kind: 'nobody' }),
      claimCheck: async () => null,
      blockLeaver: async () => true,
      confirmPerson: async () => {},
      ...store,
    },
    clock: systemClock,
    log: createLog('silent'),
    node: 'a',
    tokenSealer: sealer,
    recheckWaitingCalls() {},
  })
}

test('whoever is due is asked about, one after the other, and only leavers are blocked', async () => {
  const due: ClaimedCheck[] = [
    { kind: 'person', person: personToCheck('stays') },
    { kind: 'keyless' },
    { kind: 'person', person: { ...personToCheck('promoted'), role: 'viewer' } },
    { kind: 'person', person: { ...personToCheck('moved'), accountId: 'search' } },
    { kind: 'person', person: personToCheck('unsure') },
    { kind: 'person', person: personToCheck('left') },
  ]
  const blocked: string[] = []
  const isDone = Promise.withResolvers<void>()
  const asked: string[] = []
  const confirmed: string[] = []
  let asking = 0
  const checks = createChecks(
    {
      async refresh(token, subject) {
        assert.equal(++asking, 1, 'two requests at once')
        asked.push(`${subject}: ${token.reveal()}`)
        await new Promise((resolve) => setImmediate(resolve))
        asking -= 1
        if (subject === 'left') return { kind: 'unknown' }
        if (subject === 'unsure') return { kind: 'failed', reason: 'the provider answered 500' }
        const claims = { email: 'a@example.com', email_verified: true, groups: ['developers'] }
        return { kind: 'confirmed', claims, refreshToken: subject === 'stays' ? null : 'next' }
      },
    },
    {
      claimDueCheck: async () => due.shift() ?? { kind: 'nobody' },
      async blockLeaver({ id }) {
        blocked.push(id)
        if (due.length === 0) isDone.resolve()
        return true
      },
      async confirmPerson({ subject }, role, next) {
        const token = next && sealer.open(next, `${issuer} ${subject}`).reveal()
        confirmed.push(`${subject}: ${role}, ${token}`)
      },
    },
  )
  checks.start()
  // The timers of the checks do not keep the process alive.
  const alive = setInterval(() => {}, 1_000)
  await isDone.promise
  clearInterval(alive)
  await checks.stop()
  assert.deepEqual(blocked, ['per_moved', 'per_left'], 'a rule for another account is none')
  assert.deepEqual(confirmed, ['stays: member, null', 'promoted: member, next'])
  const names = ['stays', 'promoted', 'moved', 'unsure', 'left']
  assert.deepEqual(
    asked,
    names.map((name) => `${name}: token of ${name}`),
  )
})

test('the provider is asked at most twice a second', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let asked = 0
  const checks = createChecks(
    { refresh: async () => ({ kind: 'failed', reason: String(++asked) }) },
    { claimDueCheck: async () => ({ kind: 'person', person: personToCheck('ada') }) },
  )
  const settle = async () => {
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
  }
  checks.start()
  const perTick: number[] = []
  for (const ms of [0, 499, 1, 499, 1]) {
    t.mock.timers.tick(ms)
    await settle()
    perTick.push(asked)
  }
  assert.deepEqual(perTick, [1, 1, 2, 2, 3])
  await checks.stop()
})

test('the checks of 10,000 people spread over the day', () => {
  let nowMs = Date.now()
  const nextUlid = createUlidSource({ ...systemClock, nowMs: () => nowMs++ })
  const noon = nowMs
  const hours = new Map<number, number>()
  for (let i = 0; i < 10_000; i++) {
    const afterMs = nextCheckMs(`per_${nextUlid()}`, noon) - noon
    assert.ok(afterMs > 0 && afterMs <= DAY_MS)
    const hour = Math.floor((afterMs - 1) / HOUR_MS)
    hours.set(hour, (hours.get(hour) ?? 0) + 1)
  }
  assert.equal(hours.size, 24)
  assert.ok(Math.max(...hours.values()) < 600, 'about 417 in each hour')
})
