import { type Clock, systemClock } from '../../kernel/clock.ts'
import { createUlidSource } from '../../kernel/ids.ts'
import type { Log } from '../../kernel/log.ts'
import { clearCache, createBatchCache } from '../operations/batch-rows.ts'
import type { StoreClock } from '../operations/sql.ts'
import { number, present } from '../rows.ts'
import { BODIES, BRIEF, READS, REFUSED, type Store } from '../store.ts'
import { createCallBatches } from './call-batches.ts'
import { openPool, type Pool, probeDeadlines } from './database.ts'
import { DatabaseClock } from './database-clock.ts'
import { migratePostgres } from './migrate.ts'
import { type NodeOptions, StoreNode } from './node.ts'
import { postgresOperations } from './run-operation.ts'

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

/** The store on PostgreSQL, for one node or many. */
export async function openPostgresStore(
  url: string,
  options: PostgresStoreOptions,
): Promise<Store & { readonly clock: Clock }> {
  const { clock, log, answerMs = ANSWER_MS } = options
  const ownClock = options.nodeClock ?? systemClock
  const databaseClock = new DatabaseClock(ownClock)
  const nodeClock = clock === 'database' ? databaseClock : ownClock
  const pools = await openPools(url, answerMs, log)
  const cache = createBatchCache()
  const node = new StoreNode(
    {
      heartbeats: pools.heartbeats,
      sweeps: pools.commands,
      nextUlid: createUlidSource(nodeClock),
      clock: databaseClock,
      log,
      // Another node may have changed the settings.
      onBeat() {
        cache.settings = null
      },
    },
    { beatEveryMs: 5_000, silentMs: 15_000, ...options.node },
  )
  const batches = createCallBatches({ db: pools.batches, node, cache, clock, answerMs, log })

  /** Closes in the order of dependencies: everything uses the pools. */
  async function close(): Promise<void> {
    await batches.close()
    await node.stop()
    await Promise.all(Object.values(pools).map((pool) => pool.close()))
  }

  try {
    await readClock(pools.heartbeats, databaseClock)
  } catch (error) {
    await close()
    throw error
  }

  const brief = postgresOperations(pools.commands, BRIEF, clock, answerMs)
  const forget = () => clearCache(cache)
  let closing: Promise<void> | null = null
  return {
    clock: nodeClock,
    load: batches.load,
    ...brief,
    setBudgetThresholds: (percents) => brief.setBudgetThresholds(percents).finally(forget),
    setBalanceLow: (nanos) => brief.setBalanceLow(nanos).finally(forget),
    ...postgresOperations(pools.reads, { ...READS, ...BODIES, ...REFUSED }, clock, answerMs),
    admit: batches.admit,
    settle: batches.settle,
    interruptOpenCalls: (atMs) => node.interruptOpenCalls(clock === 'caller' ? Math.trunc(atMs) : null),
    close() {
      closing ??= close()
      return closing
    },
  }
}

/** Creates or upgrades the tables, and opens at most eight connections. Batches of calls have their own. */
async function openPools(url: string, answerMs: number, log: Log): Promise<Readonly<Record<PoolName, Pool>>> {
  const deadlines = await probeDeadlines(url)
  await migratePostgres(url, { log })
  const common = { url, deadlines, connectMs: answerMs, statementMs: Math.max(STATEMENT_MS, answerMs) }
  return {
    batches: openPool({ ...common, connectionsMax: 1, isHot: true }),
    commands: openPool({ ...common, connectionsMax: 4 }),
    reads: openPool({ ...common, connectionsMax: 2, statementMs: Math.max(READ_MS, answerMs) }),
    heartbeats: openPool({ ...common, connectionsMax: 1, isHot: true }),
  }
}

type PoolName = 'batches' | 'commands' | 'reads' | 'heartbeats'

async function readClock(db: Pool, clock: DatabaseClock): Promise<void> {
  const sentAtMs = clock.monotonicMs()
  const [row] = await db.query('SELECT now_ms() AS now_ms')
  clock.sync(number(present(row), 'now_ms'), sentAtMs)
}
