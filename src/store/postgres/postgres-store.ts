import { type Clock, systemClock } from '../../kernel/clock.ts'
import { StoreRefused, StoreUnavailable } from '../../kernel/errors.ts'
import { createUlidSource } from '../../kernel/ids.ts'
import type { Log } from '../../kernel/log.ts'
import type { Admission, CallClosing, CallOpening, Settled } from '../../ledger/call.ts'
import { createBatcher, createLoad } from '../batcher.ts'
import { applyBatch, type CallCommand, toBatch } from '../operations/apply-batch.ts'
import { clearCache, createBatchCache } from '../operations/batch-rows.ts'
import type { StoreClock } from '../operations/sql.ts'
import { number, present } from '../rows.ts'
import { BODIES, BRIEF, READS, REFUSED, type Store } from '../store.ts'
import { openPool, probeDeadlines, StoreInDoubt, sqlState } from './database.ts'
import { migrate } from './ledger.ts'
import { createDatabaseClock, createNode, type NodeOptions } from './node.ts'
import { createOrphanedAdmissions } from './orphaned-admissions.ts'
import { dialectOf, operationsOn, runBatch } from './run-operation.ts'

export interface PostgresStoreOptions {
  /** The clock that decides: the database's in production, the caller's in tests. */
  readonly clock: StoreClock
  readonly node: Pick<NodeOptions, 'name' | 'alone'> & Partial<NodeOptions>
  readonly log: Log
  readonly nodeClock?: Clock
  /** How long an admission or settlement waits for its answer; also the timeout of statements. */
  readonly answerMs?: number | undefined
}

/** Timeout of an answer. A call is refused after 2 s, so 0.3 s remain for sending the command and the answer. */
const ANSWER_MS = 1_700
const STATEMENT_MS = 1_800

const READ_MS = 10_000

/** Maximum consecutive attempts of a batch whose node was fenced. */
const ATTEMPTS_MAX = 3

/** A batch of 200 calls takes about 20 ms, during which other nodes with the same keys wait. */
const BATCH_MAX = 200

/** The error of the statement that closes cached calls, if one of the calls has changed since. */
const DIVISION_BY_ZERO = '22012'

/** The store on PostgreSQL, for one node or many. Batches of calls have their own connection; at most eight in all. */
export async function openPostgresStore(
  url: string,
  options: PostgresStoreOptions,
): Promise<Store & { readonly clock: Clock }> {
  const { clock, log, answerMs = ANSWER_MS } = options
  const statementMs = Math.max(STATEMENT_MS, answerMs)
  const readMs = Math.max(READ_MS, answerMs)
  const ownClock = options.nodeClock ?? systemClock
  const databaseClock = createDatabaseClock(ownClock)
  const nodeClock = clock === 'database' ? databaseClock : ownClock
  const deadlines = await probeDeadlines(url)
  await migrate(url)
  const open = (
    connectionsMax: number,
    extra: { readonly isHot?: true; readonly statementMs?: number } = {},
  ) => openPool({ url, deadlines, connectMs: answerMs, connectionsMax, statementMs, ...extra })
  const batchPool = open(1, { isHot: true })
  const commandPool = open(4)
  const readPool = open(2, { statementMs: readMs })
  const heartbeatPool = open(1, { isHot: true })

  const cache = createBatchCache()
  // Another node may have changed the settings.
  const onBeat = () => {
    cache.settings = null
  }
  const node = createNode(
    { db: heartbeatPool, nextUlid: createUlidSource(nodeClock), clock: databaseClock, log, onBeat },
    { beatEveryMs: 5_000, silentMs: 15_000, ...options.node },
  )
  const dialect = dialectOf(clock)

  /** Settles and admits the calls as this node. If the node was fenced, it registers again. */
  async function applyCalls(calls: readonly CallCommand[]) {
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      const registration = await node.registered()
      const context = { clock, node: registration, cache }
      const run = () => runBatch(batchPool, () => applyBatch(calls, context), dialect)
      const answer = await run().catch((error: unknown) => {
        if (sqlState(error) !== DIVISION_BY_ZERO) throw error
        clearCache(cache)
        return run()
      })
      if (answer !== 'fenced') return answer
      node.markFenced(registration.id, registration.epoch)
    }
    throw new StoreUnavailable('this node was fenced by other nodes')
  }

  const { load, recordCommit } = createLoad(() => calls.waiting)
  const calls = createBatcher<CallCommand, Admission | Settled>({
    async send(commands) {
      const applied = await applyCalls(commands)
      return applied.map((value) =>
        value instanceof StoreRefused ? { ok: false, error: value } : { ok: true, value },
      )
    },
    batchMax: BATCH_MAX,
    answerMs,
    onCommit: (commands, ms) => recordCommit(commands.length, ms),
    onLate(command, answer) {
      if ('kind' in answer && answer.kind === 'admitted') orphans.add(toBatch([command]).openings)
    },
    onFailure(commands, error) {
      if (error instanceof StoreInDoubt) orphans.add(toBatch(commands).openings)
    },
  })
  const admit = (opening: CallOpening) => calls.submit(['admit', opening]) as Promise<Admission>
  const settle = (closing: CallClosing) => calls.submit(['settle', closing]) as Promise<Settled>
  const orphans = createOrphanedAdmissions({ node, settle, log })
  let closing: Promise<void> | null = null

  async function close(): Promise<void> {
    // Close in the order of dependencies: releasing orphans settles calls, and everything uses the pools.
    await orphans.close()
    await calls.close()
    await node.stop()
    await Promise.all([batchPool, commandPool, readPool, heartbeatPool].map((pool) => pool.close()))
  }

  try {
    const sentAtMs = ownClock.monotonicMs()
    const [row] = await heartbeatPool.query('SELECT now_ms() AS now_ms')
    databaseClock.sync(number(present(row), 'now_ms'), sentAtMs)
  } catch (error) {
    await close()
    throw error
  }

  const brief = operationsOn(commandPool, BRIEF, clock, answerMs)
  const forget = () => clearCache(cache)

  return {
    clock: nodeClock,
    load,
    ...brief,
    setBudgetThresholds: (percents) => brief.setBudgetThresholds(percents).finally(forget),
    setBalanceLow: (nanos) => brief.setBalanceLow(nanos).finally(forget),
    ...operationsOn(readPool, { ...READS, ...BODIES, ...REFUSED }, clock, answerMs),
    admit,
    settle,
    interruptOpenCalls: (atMs) => node.interruptOpenCalls(clock === 'caller' ? Math.trunc(atMs) : null),
    close() {
      closing ??= close()
      return closing
    },
  }
}
