import { setTimeout as sleep } from 'node:timers/promises'
import { openDatabaseAt } from '../store/postgres-under-test.ts'
import { Random } from '../support/random.ts'
import { until } from '../support/until.ts'
import { checkLedger } from './chaos-checks.ts'
import { keepHistory } from './chaos-history.ts'
import { ChaosLedger } from './chaos-ledger.ts'
import { ChaosLoad, type LoadedKey } from './chaos-load.ts'
import {
  type Deed,
  describeDeed,
  type LedgerDeed,
  type NodeDeed,
  type PlannedDeed,
  planDeeds,
  type WireDeed,
} from './chaos-plan.ts'
import { Cluster } from './cluster.ts'
import type { ClusterNode } from './cluster-node.ts'
import { RestartablePostgres } from './restartable-postgres.ts'
import { sendCall } from './send-call.ts'

const NODES = 3
const KEYS = 16
const CAP_NANOS = 4_000_000n
/** Enough credit for every call, so that credit is enforced and refuses none. */
const FIRST_CREDIT_USD = 1_000

/** A dead node is fenced after at most 20 s; a busy machine may take a little longer. */
const RECOVERED_WITHIN_MS = 60_000

/** Nodes and their database under load, with faults that follow from the seed. */
export class ChaosRun {
  readonly deeds: readonly PlannedDeed[]
  readonly #server: RestartablePostgres
  readonly #cluster: Cluster
  readonly #keys: readonly LoadedKey[]
  readonly #load: ChaosLoad
  readonly #ledger: ChaosLedger
  readonly #underWay = new Set<Promise<unknown>>()
  #records: readonly string[] = []

  private constructor(
    server: RestartablePostgres,
    cluster: Cluster,
    keys: readonly LoadedKey[],
    seed: number,
    forMs: number,
  ) {
    this.#server = server
    this.#cluster = cluster
    this.#keys = keys
    this.deeds = planDeeds(new Random(seed), forMs, NODES)
    this.#load = new ChaosLoad(cluster, keys, seed)
    this.#ledger = new ChaosLedger(cluster)
  }

  static async start(seed: number, forMs: number): Promise<ChaosRun> {
    const server = await RestartablePostgres.start()
    try {
      const cluster = await Cluster.start(
        Array.from({ length: NODES }, () => ({})),
        openDatabaseAt(server.url),
      )
      await keepHistory(server.url)
      const credit = { amount_usd: FIRST_CREDIT_USD, reason: 'first' }
      await cluster.manage(0, 'POST', '/gateway/v1/credits', credit)
      await cluster.manage(0, 'PATCH', '/gateway/v1/accounts/default', { credit_enforced: true })
      return new ChaosRun(server, cluster, await makeKeys(cluster), seed, forMs)
    } catch (error) {
      await server.close()
      throw error
    }
  }

  async play(onDeed: (deed: string) => void = () => {}): Promise<void> {
    const startMs = performance.now()
    for (const planned of this.deeds) {
      await sleep(Math.max(0, startMs + planned.atMs - performance.now()))
      onDeed(describeDeed(planned))
      this.#begin(this.#apply(planned.deed))
    }
    await this.#heal()
    await this.#load.stop()
    await this.#ledger.finish()
    const { nodes } = this.#cluster
    const isQuiet = async () =>
      (await this.#inFlight()) === 0 && nodes.every((node) => node.spooledCalls === 0)
    await until('no call is in flight and no settlement waits', isQuiet, {
      withinMs: RECOVERED_WITHIN_MS,
      everyMs: 200,
    })
    const ways = await this.#cluster.database.query(
      'SELECT state, count(*) AS calls FROM call GROUP BY state',
    )
    this.#records = ways.map((row) => `${row['calls']} ${row['state']}`).toSorted()
    await checkLedger({ cluster: this.#cluster, keys: this.#keys, load: this.#load, ledger: this.#ledger })
  }

  get summary(): string {
    const statuses = [...this.#load.statuses].toSorted().map(([status, count]) => `${count} ${status}`)
    return [
      `${this.deeds.length} deeds, ${this.#load.sent} calls sent (${statuses.join(', ')})`,
      `${this.#cluster.upstream.names.length} reached upstream, records: ${this.#records.join(', ')}`,
    ].join(', ')
  }

  async close(): Promise<void> {
    await this.#server.resume()
    await Promise.allSettled(this.#underWay)
    const stopped = this.#load.stop()
    await this.#cluster.close()
    await stopped
    await this.#server.close()
  }

  /** A long action continues while the next one begins. */
  async #apply(deed: Deed): Promise<void> {
    if ('nth' in deed) await this.#applyToLedger(deed)
    else await this.#applyToNode(deed.what, this.#cluster.node(deed.node))
  }

  async #applyToNode(what: NodeDeed | WireDeed, node: ClusterNode): Promise<void> {
    switch (what) {
      case 'kill node':
        await node.kill()
        break
      case 'stop node':
        await node.stop()
        break
      case 'start node':
        // Without a database the node does not start; it starts after all faults are healed.
        await node.start()
        break
      case 'pause node':
        node.pause()
        break
      case 'resume node':
        node.resume()
        break
      case 'cut wire':
        node.wire.cut()
        break
      case 'mute wire':
        node.wire.mute()
        break
      case 'hold replies':
        node.wire.holdReplies()
        break
      case 'heal wire':
        node.wire.heal()
        break
    }
  }

  async #applyToLedger({ what, node, nth }: LedgerDeed): Promise<void> {
    const keyId = this.#keys[nth % this.#keys.length]?.id ?? ''
    switch (what) {
      case 'stop database':
        await this.#server.stopAtOnce()
        break
      case 'start database':
        await this.#server.startAgain()
        break
      case 'pause database':
        await this.#server.pause()
        break
      case 'resume database':
        await this.#server.resume()
        break
      case 'kill backend':
        await this.#server.killBackend(nth)
        break
      case 'revoke key':
        this.#ledger.revoke(keyId, node)
        break
      case 'empty cap':
        this.#ledger.emptyCap(keyId, node)
        break
      case 'top up':
        this.#ledger.topUp(node)
        break
    }
  }

  #begin(work: Promise<unknown>): void {
    const done = work.catch(() => {}).finally(() => this.#underWay.delete(done))
    this.#underWay.add(done)
  }

  async #heal(): Promise<void> {
    const { nodes } = this.#cluster
    await this.#server.resume()
    for (const node of nodes) {
      node.resume()
      node.wire.heal()
    }
    await this.#server.startAgain()
    await Promise.all(this.#underWay)
    await Promise.all(nodes.map((node) => node.start()))
    const { key } = await this.#freshKey()
    for (const [i, node] of nodes.entries()) {
      let attempts = 0
      await until(`node ${i} serves again`, async () => {
        const name = `well again ${i} ${attempts++}`
        return (await sendCall(node.url, { name, key })).status === 200
      })
    }
  }

  /** Creates a new key, because the keys of the load may have been revoked. */
  async #freshKey(): Promise<{ id: string; key: string }> {
    let made: { id: string; key: string } | null = null
    await until('a key is created', async () => {
      made = await this.#cluster.createKey().catch(() => null)
      return made !== null
    })
    return made ?? { id: '', key: '' }
  }

  async #inFlight(): Promise<number> {
    return (await this.#cluster.database.query("SELECT id FROM hold WHERE state = 'in_flight'")).length
  }
}

async function makeKeys(cluster: Cluster): Promise<readonly LoadedKey[]> {
  const keys: LoadedKey[] = []
  for (let i = 0; i < KEYS; i++) {
    const capNanos = i % 3 === 0 ? CAP_NANOS : null
    const fields = capNanos === null ? {} : { monthly_budget_usd: Number(capNanos) / 1e9 }
    keys.push({ ...(await cluster.createKey(fields, i)), capNanos })
  }
  return keys
}
