import assert from 'node:assert/strict'
import { DecodingQueue, type KeyShare } from '../../src/calls/key-shares.ts'
import { ReadingPace } from '../../src/metering/reading-pace.ts'
import { test } from '../support/suite.ts'

const client = (hasLeft = false) => ({ isOver: hasLeft })
const shareOf = (name: string): KeyShare => ({
  name,
  smallName: `${name} small`,
  calls: 0,
  decoding: Promise.resolve(),
  pace: new ReadingPace(),
})
const settled = () => new Promise((resolve) => setImmediate(resolve))

/** Bodies that are decoded when the test says so, in the order of their turns. */
function bench(max: number) {
  const turns = new DecodingQueue(max)
  const begun: string[] = []
  const finish = new Map<string, () => void>()
  return {
    turns,
    begun,
    decode(name: string, share: KeyShare) {
      return turns.run(share, client(), () => {
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

test('one body per key and a few in all are decoded at a time, and keys take turns', async () => {
  const { turns, begun, decode, finish } = bench(2)
  const [a, b, c] = [shareOf('a'), shareOf('b'), shareOf('c')]
  for (const i of [1, 2, 3]) void decode(`a${i}`, a)
  await settled()
  assert.deepEqual(begun, ['a1'])
  for (const i of [1, 2]) void decode(`b${i}`, b)
  void decode('c1', c)
  await settled()
  assert.deepEqual(begun, ['a1', 'b1'])
  // The other key does not wait behind all earlier bodies.
  await finish('a1')
  assert.deepEqual(begun.slice(2), ['c1'])
  await finish('b1')
  assert.deepEqual(begun.slice(3), ['a2'])
  assert.equal(turns.running, 2)
  for (const name of ['c1', 'a2', 'b2', 'a3']) await finish(name)
  assert.deepEqual(begun.slice(4), ['b2', 'a3'])
  assert.equal(turns.running, 0)
})

test('a body whose client left is not decoded, and the next body is decoded after a failure', async () => {
  const turns = new DecodingQueue(1)
  const share = shareOf('a')
  const failing = turns.run(share, client(), () => Promise.reject(new Error('broken')))
  const left = turns.run(share, client(true), () => Promise.reject(new Error('decoded')))
  const next = turns.run(share, client(), () => Promise.resolve('done'))
  await assert.rejects(failing, /broken/)
  assert.equal(await left, null)
  assert.equal(await next, 'done')
  assert.equal(turns.running, 0)
})
