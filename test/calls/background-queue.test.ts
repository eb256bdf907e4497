import assert from 'node:assert/strict'
import { BackgroundQueue } from '../../src/calls/key-shares.ts'
import { test } from '../support/suite.ts'

test('tasks run one by one, in order', async () => {
  const background = new BackgroundQueue()
  const steps: string[] = []
  const gate = Promise.withResolvers<void>()
  for (const name of ['first', 'second']) {
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
