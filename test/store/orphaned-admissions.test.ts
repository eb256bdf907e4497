import assert from 'node:assert/strict'
import { StoreUnavailable } from '../../src/kernel/errors.ts'
import type { Log } from '../../src/kernel/log.ts'
import type { CallClosing, CallOpening, Settled } from '../../src/ledger/call.ts'
import { createOrphanedAdmissions } from '../../src/store/postgres/orphaned-admissions.ts'
import { test } from '../support/suite.ts'

test('a store that closes after a failed release tries once more, so that the hold does not stay', async () => {
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
      return { balanceNanos: 0n, booked: true }
    },
    log: { warn: () => failed.resolve() } as unknown as Log,
  })
  orphans.add([{ requestId: 'req_1', atMs: 0 } as CallOpening])
  await failed.promise
  await orphans.close()
  assert.deepEqual(released, ['req_1 released'])
})
