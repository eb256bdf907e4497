import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Afterwards } from '../../src/gateway/afterwards.ts'

test('as many pieces of work are expected as may be, and one more when one is done', async () => {
  const afterwards = new Afterwards()
  assert.deepEqual(
    [1, 2, 3].map(() => afterwards.tryExpect(2)),
    [true, true, false],
  )
  assert.equal(afterwards.count, 2)
  await new Promise<void>((resolve) => afterwards.add(async () => resolve()))
  while (afterwards.count === 2) await new Promise((resolve) => setImmediate(resolve))
  assert.equal(afterwards.tryExpect(2), true)
})

test('pieces of work are done one after the other, in their order', async () => {
  const afterwards = new Afterwards()
  const steps: string[] = []
  const gate = Promise.withResolvers<void>()
  for (const name of ['first', 'second']) {
    afterwards.tryExpect(2)
    afterwards.add(async () => {
      steps.push(`${name} begins`)
      await gate.promise
      steps.push(`${name} ends`)
    })
  }
  while (steps.length === 0) await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(steps, ['first begins'])
  gate.resolve()
  while (afterwards.count > 0) await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(steps, ['first begins', 'first ends', 'second begins', 'second ends'])
})
