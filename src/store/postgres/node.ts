import { StoreUnavailable } from '../../kernel/errors.ts'
import type { IdSource } from '../../kernel/ids.ts'
import type { Log } from '../../kernel/log.ts'
import { createWorkLoop } from '../../kernel/work-loop.ts'
import { nanos, number } from '../rows.ts'
import { SCHEMA_VERSION } from '../schema.ts'
import type { Pool } from './database.ts'
import type { DatabaseClock } from './database-clock.ts'
import { fenceNodes, interruptCallsOf, interruptFencedNodes, removeNode } from './fencing.ts'
import { readVersion } from './ledger.ts'

export interface NodeOptions {
  readonly name: string
  /** No other process uses this name, so a previous node with the name is dead and is fenced at once. */
  readonly alone: boolean
  /** Interval of the heartbeat, and of the sweep for silent nodes. Null: never, for tests. */
  readonly beatEveryMs: number | null
  /** A node without a heartbeat for this long, by the database's clock, is fenced. */
  readonly silentMs: number
}

/** A registration of this process in the table of nodes. Batches of an earlier epoch have no effect. */
export interface Registration {
  readonly id: string
  readonly epoch: bigint
}

interface NodeDependencies {
  /** A separate connection: a heartbeat must not wait for anything else. */
  readonly heartbeats: Pool
  /** For the sweep, which may take long if a dead node left many calls. */
  readonly sweeps: Pool
  readonly nextUlid: IdSource
  readonly clock: Pick<DatabaseClock, 'monotonicMs' | 'sync'>
  readonly log: Log
  onBeat(): void
}

const OUTDATED =
  'a newer release has upgraded the database, and this one cannot use it any more: start the newer release'

/** This process as a node of the database. It registers with its first admission; management commands never do. */
export class StoreNode {
  readonly #parts: NodeDependencies
  readonly #options: NodeOptions
  readonly #stopping = new AbortController()
  #current: Registration | null = null
  #registering: Promise<Registration> | null = null
  #loops: readonly ReturnType<typeof createWorkLoop>[] = []
  /** Monotonic time since which this node's heartbeats have had no gap. */
  #steadySinceMs: number | null = null
  #lastBeatMs = 0

  constructor(parts: NodeDependencies, options: NodeOptions) {
    this.#parts = parts
    this.#options = options
  }

  registered(): Promise<Registration> {
    if (this.#current !== null) return Promise.resolve(this.#current)
    this.#registering ??= this.#register().finally(() => {
      this.#registering = null
    })
    return this.#registering
  }

  async #register(): Promise<Registration> {
    const { heartbeats, nextUlid, log } = this.#parts
    const { name, alone } = this.#options
    const id = `node_${nextUlid()}`
    await heartbeats.transaction(async (tx) => {
      // An upgrade waits for this lock, or has ended: it must not miss a node that cannot use the new tables.
      const { oldestVersion } = await readVersion(tx, 'FOR SHARE')
      if (oldestVersion > SCHEMA_VERSION) throw new StoreUnavailable(OUTDATED)
      if (alone) await fenceNodes(tx, 'name = $1', name)
      await tx.query(
        `INSERT INTO node (id, name, schema_version, started_at_ms, seen_at_ms)
         VALUES ($1, $2, $3, now_ms(), now_ms())`,
        [id, name, SCHEMA_VERSION],
      )
    })
    log.info({ node: id, name }, 'this node is registered')
    this.#current = { id, epoch: 1n }
    this.#startLoops()
    return this.#current
  }

  #startLoops(): void {
    const { beatEveryMs } = this.#options
    if (beatEveryMs === null || this.#loops.length > 0) return
    const every = (work: () => Promise<void>, onFailure: (error: unknown) => void) =>
      createWorkLoop({
        poll: async () => {
          await work()
          return beatEveryMs
        },
        onFailure(error) {
          onFailure(error)
          return beatEveryMs
        },
        stopping: this.#stopping.signal,
      })
    this.#loops = [
      every(
        () => this.#beat(),
        (error) => this.#onBeatFailure(error as Error),
      ),
      every(
        () => this.#sweep(),
        (error) =>
          this.#parts.log.warn({ cause: (error as Error).message }, 'the sweep for silent nodes failed'),
      ),
    ]
    for (const loop of this.#loops) loop.start()
  }

  async #beat(): Promise<void> {
    const { heartbeats, clock, onBeat } = this.#parts
    const registration = await this.registered()
    const sentAtMs = clock.monotonicMs()
    const [seen] = await heartbeats.query(
      'UPDATE node SET seen_at_ms = now_ms() WHERE id = $1 AND fenced_at_ms IS NULL RETURNING seen_at_ms',
      [registration.id],
    )
    if (seen === undefined) this.#forget(registration)
    else clock.sync(number(seen, 'seen_at_ms'), sentAtMs)
    const nowMs = clock.monotonicMs()
    // While this process was suspended, it learned nothing about other nodes.
    const wasSilent = nowMs - this.#lastBeatMs > this.#options.silentMs
    if (this.#steadySinceMs === null || wasSilent) this.#steadySinceMs = nowMs
    this.#lastBeatMs = nowMs
    onBeat()
  }

  #onBeatFailure(error: Error): void {
    this.#steadySinceMs = null
    this.#parts.log.warn({ cause: error.message }, 'the heartbeat of this node failed')
  }

  /** After an outage all nodes have been silent, so a node fences others only if its own heartbeats had no gap. */
  get isSteady(): boolean {
    const { monotonicMs } = this.#parts.clock
    return this.#steadySinceMs !== null && monotonicMs() - this.#steadySinceMs >= this.#options.silentMs
  }

  /** In a loop of its own: a dead node with many calls must not delay the heartbeat. */
  async #sweep(): Promise<void> {
    if (!this.isSteady) return
    const { sweeps, log } = this.#parts
    for (const node of await fenceNodes(sweeps, 'seen_at_ms < now_ms() - $1', this.#options.silentMs))
      log.warn({ node }, 'a node without a heartbeat was fenced')
    const calls = await interruptFencedNodes(sweeps, null)
    if (calls > 0) log.warn({ calls }, 'calls of fenced nodes are interrupted, at no charge')
  }

  /**
   * Call this when a batch of this registration had no effect. If only the answer to `raiseEpoch` was lost, the node goes
   * on with the raised epoch. If other nodes fenced this one, it registers again.
   */
  async renew(registration: Registration): Promise<void> {
    const [row] = await this.#parts.heartbeats.query(
      'SELECT epoch FROM node WHERE id = $1 AND fenced_at_ms IS NULL',
      [registration.id],
    )
    if (row === undefined) this.#forget(registration)
    else this.#adopt(registration.id, nanos(row, 'epoch'))
  }

  #forget(registration: Registration): void {
    if (this.#current !== registration) return
    this.#current = null
    this.#parts.log.warn({ node: registration.id }, 'other nodes fenced this node; it registers again')
  }

  #adopt(id: string, epoch: bigint): void {
    if (this.#current?.id === id && this.#current.epoch < epoch) this.#current = { id, epoch }
  }

  /** Once this resolves, no earlier admission of this node can still take effect. */
  async raiseEpoch(): Promise<void> {
    if (this.#current === null) return
    const { id } = this.#current
    const [row] = await this.#parts.heartbeats.query(
      `WITH locked AS (SELECT id FROM node WHERE id = $1 AND fenced_at_ms IS NULL FOR UPDATE)
       UPDATE node SET epoch = epoch + 1 FROM locked WHERE node.id = locked.id RETURNING epoch`,
      [id],
    )
    if (row !== undefined) this.#adopt(id, nanos(row, 'epoch'))
  }

  async interruptOpenCalls(atMs: number | null): Promise<number> {
    const { sweeps } = this.#parts
    const { id } = await this.registered()
    return (await interruptCallsOf(sweeps, id, atMs)) + (await interruptFencedNodes(sweeps, atMs))
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all(this.#loops.map((loop) => loop.ended()))
    if (this.#current === null) return
    const { heartbeats, log } = this.#parts
    const { id } = this.#current
    try {
      await fenceNodes(heartbeats, 'id = $1', id)
      await removeNode(heartbeats, id)
    } catch (error) {
      const cause = (error as Error).message
      log.warn({ cause }, 'this node could not deregister; other nodes will fence it')
    }
  }
}
