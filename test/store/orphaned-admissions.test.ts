import assert from 'node:assert/strict'
import { StoreUnavailable } from '../../src/kernel/errors.ts'
import type { Log } from '../../src/kernel/log.ts'
import type { CallClosing, CallOpening, Settled } from '../../src/ledger/call.ts'
import { createOrphanedAdmissions } from '../../src/store/postgres/orphaned-admissions.ts'
import { test } from '../support/suite.ts'

test('a closing store retries a failed release once, so that no hold remains', async () => {
  const failed = Promise.withResolvers<void>()
  const released: string[] = []
  let tries = 0
  const orphans = createOrphanedAdmissions({
    node: {
      async raiseEpoch() {
        tries += 1
        if (tries === 1) throw new StoreUnavailable('not now')
      },
    },
    async settle({ requestId, state }: CallClosing): Promise<Settled> {
      released.push(`${requestId} ${state}`)
      return { balanceNanos: 0n, applied: true }
    },
    log: { warn: () => failed.resolve() } as unknown as Log,
  })
  orphans.add([{ requestId: 'req_1', atMs: 0 } as CallOpening])
  await failed.promise
  await orphans.close()
  assert.deepEqual(released, ['req_1 released'])
})

test('an outage is logged once, however often the release is retried', async () => {
  const orphan = { requestId: 'req_1', atMs: 0 } as CallOpening
  const released = Promise.withResolvers<void>()
  let tries = 0
  let lines = 0
  const orphans = createOrphanedAdmissions({
    node: {
      async raiseEpoch() {
        tries += 1
        if (tries === 3) return
        // Another orphaned admission ends the pause after a failure.
        setImmediate(() => orphans.add([orphan]))
        throw new StoreUnavailable('not now')
      },
    },
    async settle(): Promise<Settled> {
      released.resolve()
      return { balanceNanos: 0n, applied: true }
    },
    log: {
      warn() {
        lines += 1
      },
    } as unknown as Log,
  })
  orphans.add([orphan])
  await released.promise
  await orphans.close()
  assert.deepEqual([tries, lines], [3, 1])
})
