import assert from 'node:assert/strict'
import { BackgroundQueue } from '../../src/calls/key-shares.ts'
import { test } from '../support/suite.ts'

test('a queue reserves a limited number of tasks, and one more when one has finished', async () => {
  const background = new BackgroundQueue()
  assert.deepEqual(
    [1, 2, 3].map(() => background.reserve(2)),
    [true, true, false],
  )
  assert.equal(background.count, 2)
  await new Promise<void>((resolve) => background.add(async () => resolve()))
  while (background.count === 2) await new Promise((resolve) => setImmediate(resolve))
  assert.equal(background.reserve(2), true)
})

test('tasks run one by one, in order', async () => {
  const background = new BackgroundQueue()
  const steps: string[] = []
  const gate = Promise.withResolvers<void>()
  for (const name of ['first', 'second']) {
    background.reserve(2)
    background.add(async () => {
      steps.push(`${name} begins`)
      await gate.promise
      steps.push(`${name} ends`)
    })
  }
  while (steps.length === 0) await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(steps, ['first begins'])
  gate.resolve()
  while (background.count > 0) await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(steps, ['first begins', 'first ends', 'second begins', 'second ends'])
})
