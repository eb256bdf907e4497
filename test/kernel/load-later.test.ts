import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadLater } from '../../src/kernel/load-later.ts'

test('a part is loaded once, when it is first asked for', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const load = t.mock.fn(async () => 'part')
  const later = loadLater(load, 1_000)
  assert.equal(load.mock.callCount(), 0)
  assert.deepEqual(await Promise.all([later.get(), later.get()]), ['part', 'part'])
  t.mock.timers.tick(1_000)
  assert.equal(await later.get(), 'part')
  assert.equal(load.mock.callCount(), 1)
})

test('a part that nobody asks for is loaded by itself after a while', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const load = t.mock.fn(async () => 'part')
  loadLater(load, 1_000)
  t.mock.timers.tick(999)
  assert.equal(load.mock.callCount(), 0)
  t.mock.timers.tick(1)
  assert.equal(load.mock.callCount(), 1)
})

test('a part that is left is loaded by itself no more', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const load = t.mock.fn(async () => 'part')
  loadLater(load, 1_000).leave()
  t.mock.timers.tick(1_000)
  assert.equal(load.mock.callCount(), 0)
})

test('a part that cannot be loaded fails for those who ask, and for nobody else', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const later = loadLater(() => Promise.reject(new Error('gone')), 1_000)
  t.mock.timers.tick(1_000)
  await new Promise((resolve) => setImmediate(resolve))
  await assert.rejects(later.get(), /gone/)
})

test('a part that could not be loaded is tried again when it is asked for again', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let tries = 0
  const later = loadLater(async () => {
    tries += 1
    if (tries === 1) throw new Error('no descriptors')
    return 'there'
  }, 1_000)
  await assert.rejects(later.get(), /no descriptors/)
  assert.equal(await later.get(), 'there')
  assert.equal(await later.get(), 'there')
  assert.equal(tries, 2)
  later.leave()
})
