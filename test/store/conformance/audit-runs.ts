import assert from 'node:assert/strict'
import { NOON, type OpenStoreUnderTest } from './fixtures.ts'
import { promisesOf } from './promise.ts'

const SILENT_MS = 60_000

/** The promises of every store about audits that run in the background. */
export function auditRunConformance(storeName: string, openStore: OpenStoreUnderTest): void {
  const promise = promisesOf(storeName, openStore)

  promise('one audit runs at a time, and the last one is told with how far it is', async ({ store }) => {
    assert.equal(await store.readAudit(), null)
    const begin = (id: string, atMs: number) => store.beginAudit({ id, node: 'here' }, atMs, SILENT_MS)
    const both = await Promise.all([begin('aud_1', NOON), begin('aud_2', NOON)])
    assert.deepEqual(both.toSorted(), [false, true])
    const running = await store.readAudit()
    assert.equal(running?.state, 'running')
    const id = running?.id ?? ''
    await store.advanceAudit(id, 3, 7, NOON + 1)
    await store.endAudit(id, 'done', '{"x":1}', NOON + 2)
    await store.advanceAudit(id, 0, 0, NOON + 3)
    await store.endAudit(id, 'failed', '{}', NOON + 3)
    assert.deepEqual(await store.readAudit(), {
      ...{ id, node: 'here', state: 'done', startedAtMs: NOON, endedAtMs: NOON + 2, done: 3, total: 7 },
      result: '{"x":1}',
    })
    assert.equal(await begin('aud_3', NOON + 3), true)
  })

  promise(
    'an audit whose node was silent for too long has failed, and another may begin',
    async ({ store }) => {
      const begin = (id: string, atMs: number) => store.beginAudit({ id, node: 'gone' }, atMs, SILENT_MS)
      await begin('aud_1', NOON)
      await store.advanceAudit('aud_1', 1, 2, NOON + 1_000)
      assert.equal(await begin('aud_2', NOON + 1_000 + SILENT_MS), false)
      assert.equal(await begin('aud_2', NOON + 1_001 + SILENT_MS), true)
      await store.endAudit('aud_1', 'done', '{}', NOON)
      assert.equal((await store.readAudit())?.id, 'aud_2')
    },
  )
}
