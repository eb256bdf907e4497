import assert from 'node:assert/strict'
import type { CallBodies } from '../../src/ledger/request-log.ts'
import { stopPostgres } from '../support/postgres.ts'
import { after, test } from '../support/suite.ts'
import { NOON } from './conformance/fixtures.ts'
import { openFreshPostgres } from './postgres-under-test.ts'

after(stopPostgres)

const request = {
  contentType: 'application/json',
  compressed: Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 1, 0xff]),
  lengthBytes: 5_000_000_000,
  truncated: true,
}
const response = { contentType: null, compressed: Buffer.alloc(0), lengthBytes: 0, truncated: false }

const bodies = (requestId: string, more: Partial<CallBodies> = {}): CallBodies => ({
  ...{ requestId, request, response, atMs: NOON },
  ...more,
})

test('what was said in a call is kept as it was, once', async () => {
  const { store, close } = await openFreshPostgres()
  try {
    assert.equal(await store.getBodies('req_1'), null)
    await store.storeBodies(bodies('req_1'))
    await store.storeBodies(bodies('req_1', { request: null }))
    assert.deepEqual(await store.getBodies('req_1'), bodies('req_1'))
    await store.storeBodies(bodies('req_2', { request: null, response: null }))
    assert.deepEqual(await store.getBodies('req_2'), bodies('req_2', { request: null, response: null }))
  } finally {
    await close()
  }
})

test('a setting is what was kept first', async () => {
  const { store, close } = await openFreshPostgres()
  try {
    assert.equal(await store.readSetting('pepper'), null)
    const kept = await Promise.all(
      ['one\0', 'two', ''].map((value) => store.getOrCreateSetting('pepper', value)),
    )
    assert.equal(new Set(kept).size, 1)
    assert.equal(await store.readSetting('pepper'), kept[0])
    assert.equal(await store.getOrCreateSetting('other', 'two\0'), 'two\0')
  } finally {
    await close()
  }
})
