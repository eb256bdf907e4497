import type { Clock } from '../../kernel/clock.ts'
import type { IdSource } from '../../kernel/ids.ts'
import type { Log } from '../../kernel/log.ts'
import { interruptCalls } from '../operations/apply-batch.ts'
import { createBatchCache } from '../operations/batch-rows.ts'
import type { StoreClock } from '../operations/sql.ts'
import { number, text } from '../rows.ts'
import type { Pool } from './database.ts'
import { dialectOf, runBatch } from './run-operation.ts'

/** The database's time, estimated on the node, so that nodes agree on months even if their clocks are off. */
export function createDatabaseClock(own: Clock) {
  let aheadMs: number | null = null

  return {
    monotonicMs: () => own.monotonicMs(),
    nowMs: () => (aheadMs === null ? own.nowMs() : Math.floor(own.monotonicMs() + aheadMs)),
    /** Call this with the database's time. `sentAtMs` is the monotonic time of the query. */
    sync(databaseMs: number, sentAtMs: number): void {
      // A slow answer may be less exact than the previous estimate.
      const receivedAtMs = own.monotonicMs()
      if (aheadMs !== null && receivedAtMs - sentAtMs > USABLE_WITHIN_MS) return
      aheadMs = databaseMs - (sentAtMs + receivedAtMs) / 2
    },
  }
}

const USABLE_WITHIN_MS = 500

export interface NodeOptions {
  readonly name: string
  /** No other process uses this name, so a previous node with the name is dead and is fenced at once. */
  readonly alone: boolean
  /** Interval of the heartbeat, at which this node also checks for silent nodes. Null: never, for tests. */
  readonly beatEveryMs: number | null
  /** A node without a heartbeat for this long, by the database's clock, is fenced. */
  readonly silentMs: number
}

interface Registration {
  readonly id: string
  readonly epoch: bigint
}

interface NodeDependencies {
  /** A separate connection: a heartbeat must not wait for anything else. */
  readonly db: Pool
  readonly nextUlid: IdSource
  readonly clock: Pick<ReturnType<typeof createDatabaseClock>, 'monotonicMs' | 'sync'>
  readonly log: Log
  onBeat(): void
}

const INTERRUPTED_AT_ONCE = 200

/** Fences nodes. The lock waits for a node's running batches, so all calls that it has admitted can be interrupted. */
function fenceWhere(condition: string, others = ''): string {
  return `WITH locked AS (SELECT id FROM node WHERE fenced_at_ms IS NULL AND ${condition}
      ORDER BY id FOR UPDATE ${others})
    UPDATE node SET fenced_at_ms = now_ms() FROM locked WHERE node.id = locked.id`
}

/** This process as a node of the database. It registers with its first admission; management commands never do. */
export function createNode(dependencies: NodeDependencies, options: NodeOptions) {
  const { db, clock, log } = dependencies
  let current: Registration | null = null
  let registering: Promise<Registration> | null = null
  let timer: NodeJS.Timeout | null = null
  let beating: Promise<void> | null = null
  let stopped = false
  /** Monotonic time since which this node's heartbeats have had no gap. */
  let steadySinceMs: number | null = null
  let lastBeatMs = 0

  async function register(): Promise<Registration> {
    const id = `node_${dependencies.nextUlid()}`
    await db.transaction(async (tx) => {
      if (options.alone) await tx.query(fenceWhere('name = $1'), [options.name])
      await tx.query(
        'INSERT INTO node (id, name, started_at_ms, seen_at_ms) VALUES ($1, $2, now_ms(), now_ms())',
        [id, options.name],
      )
    })
    log.info({ node: id, name: options.name }, 'this node is registered')
    current = { id, epoch: 1n }
    scheduleBeat()
    return current
  }

  function registered(): Promise<Registration> {
    if (current !== null) return Promise.resolve(current)
    registering ??= register().finally(() => {
      registering = null
    })
    return registering
  }

  /** Call this when the database reported that this registration is fenced. */
  function markFenced(id: string, epoch: bigint): void {
    if (current?.id !== id || current.epoch !== epoch) return
    current = null
    log.warn({ node: id }, 'other nodes fenced this node; it registers again')
  }

  function scheduleBeat(): void {
    if (options.beatEveryMs === null || stopped || timer !== null) return
    timer = setTimeout(() => {
      timer = null
      beating = beat().finally(() => {
        beating = null
        scheduleBeat()
      })
    }, options.beatEveryMs)
  }

  async function beat(): Promise<void> {
    try {
      const { id, epoch } = await registered()
      const sentAtMs = clock.monotonicMs()
      const [seen] = await db.query(
        'UPDATE node SET seen_at_ms = now_ms() WHERE id = $1 AND fenced_at_ms IS NULL RETURNING seen_at_ms',
        [id],
      )
      if (seen === undefined) markFenced(id, epoch)
      else clock.sync(number(seen, 'seen_at_ms'), sentAtMs)
      recordBeat()
      dependencies.onBeat()
      if (isSteady()) await sweep()
    } catch (error) {
      steadySinceMs = null
      log.warn({ cause: (error as Error).message }, 'the heartbeat of this node failed')
    }
  }

  function recordBeat(): void {
    const nowMs = clock.monotonicMs()
    // While this process was suspended, it learned nothing about other nodes.
    if (steadySinceMs === null || nowMs - lastBeatMs > options.silentMs) steadySinceMs = nowMs
    lastBeatMs = nowMs
  }

  /** After an outage all nodes have been silent, so a node fences others only if its own heartbeats had no gap. */
  function isSteady(): boolean {
    return steadySinceMs !== null && clock.monotonicMs() - steadySinceMs >= options.silentMs
  }

  async function sweep(): Promise<void> {
    const fenced = await db.query(
      `${fenceWhere('seen_at_ms < now_ms() - $1', 'SKIP LOCKED')} RETURNING node.id`,
      [options.silentMs],
    )
    for (const row of fenced) log.warn({ node: text(row, 'id') }, 'a node without a heartbeat was fenced')
    const calls = await interruptFenced(null)
    if (calls > 0) log.warn({ calls }, 'calls of fenced nodes are interrupted, at no charge')
  }

  async function interruptFenced(atMs: number | null): Promise<number> {
    const fencedNodes = await db.query('SELECT id FROM node WHERE fenced_at_ms IS NOT NULL ORDER BY id')
    let total = 0
    for (const row of fencedNodes) {
      total += await interruptCallsOf(text(row, 'id'), atMs)
      await remove(text(row, 'id'))
    }
    return total
  }

  /** Removes a fenced node without open calls. If its process still runs, it registers again. */
  async function remove(id: string): Promise<void> {
    await db.query(
      `DELETE FROM node WHERE id = $1 AND fenced_at_ms IS NOT NULL
         AND NOT EXISTS (SELECT FROM call WHERE node_id = $1 AND state = 'in_flight')`,
      [id],
    )
  }

  /** Interrupts calls in portions, because other nodes wait for the rows that a portion locks. */
  async function interruptCallsOf(id: string, atMs: number | null): Promise<number> {
    const clockSource: StoreClock = atMs === null ? 'database' : 'caller'
    const context = { node: null, clock: clockSource, cache: createBatchCache() }
    let total = 0
    for (;;) {
      const calls = await runBatch(
        db,
        () => interruptCalls(id, INTERRUPTED_AT_ONCE, atMs ?? Number.MAX_SAFE_INTEGER, context),
        dialectOf(clockSource),
      )
      if (calls === 0) return total
      if (typeof calls === 'number') total += calls
    }
  }

  return {
    registered,
    markFenced,

    /** Once this resolves, no earlier admission of this node can still take effect. */
    async raiseEpoch(): Promise<void> {
      if (current === null) return
      const { id } = current
      const [row] = await db.query(
        `WITH locked AS (SELECT id FROM node WHERE id = $1 AND fenced_at_ms IS NULL FOR UPDATE)
         UPDATE node SET epoch = epoch + 1 FROM locked WHERE node.id = locked.id RETURNING epoch`,
        [id],
      )
      const epoch = row?.['epoch']
      if (current?.id === id && typeof epoch === 'bigint') current = { id, epoch }
    },

    async interruptOpenCalls(atMs: number | null): Promise<number> {
      const { id } = await registered()
      return (await interruptCallsOf(id, atMs)) + (await interruptFenced(atMs))
    },

    async stop(): Promise<void> {
      stopped = true
      if (timer !== null) clearTimeout(timer)
      timer = null
      await beating
      if (current === null) return
      try {
        await db.query(fenceWhere('id = $1'), [current.id])
        await remove(current.id)
      } catch (error) {
        log.warn(
          { cause: (error as Error).message },
          'this node could not deregister; other nodes will fence it',
        )
      }
    },
  }
}
