import { StoreRefused, StoreUnavailable } from '../../kernel/errors.ts'
import type { Log } from '../../kernel/log.ts'
import type { Admission, CallClosing, CallOpening, Settled } from '../../ledger/call.ts'
import { Outbox } from '../../ledger/outbox.ts'
import { Batcher, createLoad } from '../batcher.ts'
import { applyBatch, type CallCommand, toBatch } from '../operations/apply-batch.ts'
import type { BatchCache } from '../operations/batch-rows.ts'
import type { StoreClock } from '../operations/sql.ts'
import { type Pool, StoreInDoubt } from './database.ts'
import type { StoreNode } from './node.ts'
import { dialectOf, runBatchOnPostgres } from './run-operation.ts'

interface CallBatchOptions {
  readonly db: Pool
  readonly node: StoreNode
  readonly cache: BatchCache
  readonly clock: StoreClock
  readonly answerMs: number
  readonly log: Log
}

/** Maximum consecutive attempts of a batch that had no effect. */
const ATTEMPTS_MAX = 3

/** A batch of 200 calls takes about 20 ms, during which other nodes with the same keys wait. */
const BATCH_MAX = 200

/** Admits and settles the calls of this node in batches, and releases admissions whose answer was lost. */
export function createCallBatches(options: CallBatchOptions) {
  const { answerMs, node, log } = options
  const { load, recordCommit } = createLoad(() => calls.waiting)
  const calls = new Batcher<CallCommand, Admission | Settled>({
    async send(commands) {
      const applied = await applyAsNode(commands, options)
      return applied.map((value) =>
        value instanceof StoreRefused ? { ok: false, error: value } : { ok: true, value },
      )
    },
    batchMax: BATCH_MAX,
    answerMs,
    onCommit: (commands, ms) => recordCommit(commands.length, ms),
    onLate(command, answer) {
      if ('kind' in answer && answer.kind === 'admitted') orphans.release(toBatch([command]).openings)
    },
    onFailure(commands, error) {
      if (error instanceof StoreInDoubt) orphans.release(toBatch(commands).openings)
    },
  })
  const admit = (opening: CallOpening) => calls.submit(['admit', opening]) as Promise<Admission>
  const settle = (closing: CallClosing) => calls.submit(['settle', closing]) as Promise<Settled>
  const orphans = new Outbox({ store: { settle }, raiseEpoch: () => node.raiseEpoch(), log })
  return {
    admit,
    settle,
    load,
    /** Releasing orphans settles calls, so orphans close first. */
    async close(): Promise<void> {
      await orphans.close()
      await calls.close()
    },
  }
}

/** If the batch had no effect, because the node was fenced or its epoch was raised, it runs again. */
async function applyAsNode(calls: readonly CallCommand[], { db, node, cache, clock }: CallBatchOptions) {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const registration = await node.registered()
    const context = { clock, node: registration, cache }
    const answer = await runBatchOnPostgres(db, () => applyBatch(calls, context), dialectOf(clock))
    if (answer !== 'fenced') return answer
    await node.renew(registration)
  }
  throw new StoreUnavailable('this node was fenced by other nodes')
}
