import assert from 'node:assert/strict'
import { DecodingTurns, type KeyShare } from '../../src/gateway/key-shares.ts'
import type { Exchange } from '../../src/http/exchange.ts'
import { Listeners } from '../../src/http/outgoing-reply.ts'
import { test } from '../support/suite.ts'

function client() {
  const res = { destroyed: false, closed: false, whenClosed: new Listeners() }
  return {
    exchange: { res } as unknown as Exchange,
    leave() {
      res.closed = true
      res.whenClosed.fire()
    },
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

/** Bodies that are decoded when the test says so, in the order in which they got their turns. */
function bench(max: number, perKeyMax: number) {
  const turns = new DecodingTurns(max, perKeyMax)
  const begun: string[] = []
  const finish = new Map<string, () => void>()
  return {
    turns,
    begun,
    decode(name: string, share: KeyShare, from = client()) {
      return turns.take(share, from.exchange, () => {
        begun.push(name)
        return new Promise<string>((resolve) => finish.set(name, () => resolve(name)))
      })
    },
    async finish(name: string) {
      finish.get(name)?.()
      await settled()
    },
  }
}

test('a few bodies are decoded at once, fewer of one key, and keys take turns', async () => {
  const { turns, begun, decode, finish } = bench(3, 2)
  const [a, b] = [
    { name: 'a', calls: 0 },
    { name: 'b', calls: 0 },
  ]
  for (const i of [1, 2, 3, 4, 5]) void decode(`a${i}`, a)
  await settled()
  assert.deepEqual(begun, ['a1', 'a2'])
  for (const i of [1, 2, 3]) void decode(`b${i}`, b)
  await settled()
  assert.deepEqual(begun, ['a1', 'a2', 'b1'])
  assert.deepEqual([turns.running, turns.waiting], [3, 5])
  // The other key does not wait behind all bodies that came before.
  await finish('a1')
  assert.deepEqual(begun, ['a1', 'a2', 'b1', 'b2'])
  await finish('b1')
  await finish('a2')
  assert.deepEqual(begun.slice(4), ['a3', 'b3'])
  for (const name of ['b2', 'a3', 'b3', 'a4', 'a5']) await finish(name)
  assert.deepEqual(begun.slice(6), ['a4', 'a5'])
  assert.deepEqual([turns.running, turns.waiting], [0, 0])
})

test('a body whose client leaves gives its place in the line up, and is not decoded', async () => {
  const { turns, begun, decode, finish } = bench(1, 1)
  const share = { name: 'a', calls: 0 }
  const [first, leaver, later] = [decode('first', share), client(), client()]
  const left = decode('left', share, leaver)
  const last = decode('last', share, later)
  leaver.leave()
  assert.equal(await left, null)
  assert.equal(turns.waiting, 1)
  await finish('first')
  assert.equal(await first, 'first')
  assert.deepEqual(begun, ['first', 'last'])
  await finish('last')
  assert.equal(await last, 'last')
  assert.deepEqual([turns.running, turns.waiting], [0, 0])
})
