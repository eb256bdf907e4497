import assert from 'node:assert/strict'
import { systemClock } from '../../src/kernel/clock.ts'
import { OpenSockets, SOCKET_KEY_POLL_MS } from '../../src/sockets/open-sockets.ts'
import { test } from '../support/suite.ts'

const OWNER = { accountId: 'acct_1', keyId: 'key_1' }

function pretendSocket(turns = 0) {
  const calls: string[] = []
  return {
    calls,
    ended: new Promise<void>(() => {}),
    drain: () => void calls.push('drain'),
    closeForRestart() {
      calls.push('restart')
      return turns
    },
    keyRevoked: () => void calls.push('revoked'),
    checkTimeouts: () => void calls.push('time'),
  }
}

test('a socket that opens during a drain is drained too', () => {
  const sockets = new OpenSockets({ mayCall: async () => false }, systemClock)
  const [before, late] = [pretendSocket(), pretendSocket()]
  sockets.add(before, OWNER)
  assert.deepEqual(before.calls, [])
  sockets.drain(60_000)
  sockets.add(late, OWNER)
  assert.deepEqual([before.calls, late.calls], [['drain'], ['drain']])
})

test('if the store cannot be read, no socket is closed and the poll is repeated', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let asked = 0
  const mayCall = async () => {
    asked += 1
    if (asked === 1) throw new Error('the store is away')
    return false
  }
  const sockets = new OpenSockets({ mayCall }, systemClock)
  const [one, another] = [pretendSocket(), pretendSocket()]
  for (const socket of [one, another]) sockets.add(socket, OWNER)
  const look = async () => {
    t.mock.timers.tick(SOCKET_KEY_POLL_MS)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await look()
  assert.deepEqual([asked, one.calls], [1, ['time']])
  await look()
  assert.equal(asked, 2, 'once for both sockets of the key')
  for (const { calls } of [one, another]) assert.deepEqual(calls, ['time', 'time', 'revoked'])
})
