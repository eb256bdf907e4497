import assert from 'node:assert/strict'
import { test } from 'node:test'
import { limits } from '../../src/kernel/limits.ts'
import { SignInAttempts } from '../../src/management/sign-in.ts'

function attemptsAt(startMs = 0) {
  let nowMs = startMs
  const attempts = new SignInAttempts({ monotonicMs: () => nowMs })
  return { attempts, pass: (ms: number) => (nowMs += ms) }
}

const times = (n: number, act: () => boolean) => Array.from({ length: n }, act).filter(Boolean).length

test('ten failures are let through in a minute, and ten more in the next', () => {
  const { attempts, pass } = attemptsAt()
  assert.equal(
    times(20, () => attempts.begin('192.0.2.1')),
    10,
  )
  pass(limits.signInFailuresMs - 1)
  assert.equal(attempts.begin('192.0.2.1'), false)
  pass(1)
  assert.equal(
    times(20, () => attempts.begin('192.0.2.1')),
    10,
  )
})

test('an attempt that is forgiven leaves room for another', () => {
  const { attempts } = attemptsAt()
  assert.equal(
    times(10, () => attempts.begin('192.0.2.1')),
    10,
  )
  attempts.forgive('192.0.2.1')
  assert.equal(
    times(3, () => attempts.begin('192.0.2.1')),
    1,
  )
})

test('addresses of one /64 are one', () => {
  const { attempts } = attemptsAt()
  let last = 0
  assert.equal(
    times(20, () => attempts.begin(`2001:db8:1:2::${(++last).toString(16)}`)),
    10,
  )
  assert.equal(attempts.begin('2001:db8:1:3::1'), true)
})

test('a flood from many addresses makes the first forgotten, and no more are remembered than may be', () => {
  const { attempts, pass } = attemptsAt()
  assert.equal(
    times(11, () => attempts.begin('10.255.0.1')),
    10,
  )
  pass(1)
  const flood = (count: number) => {
    for (let i = 0; i < count; i += 1) attempts.begin(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`)
  }
  flood(limits.signInAddressesMax - 1)
  assert.equal(attempts.begin('10.255.0.1'), false)
  attempts.begin('192.0.2.9')
  assert.equal(attempts.begin('10.255.0.1'), true)
})
