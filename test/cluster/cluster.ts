import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { request } from 'undici'
import type { Environment } from '../../src/config/read-config.ts'
import { assertConserved } from '../store/conformance/conservation.ts'
import { type OpenDatabase, openTestDatabase } from '../store/postgres-under-test.ts'
import { type GatedUpstream, startGatedUpstream } from '../support/gated-upstream.ts'
import { type Family, readOpenMetrics } from '../support/open-metrics.ts'
import { ClusterNode } from './cluster-node.ts'

type Json = Record<string, unknown>

/** The timeout of management requests: a paused node would never answer. */
const MANAGED_WITHIN_MS = 15_000

export class Cluster {
  readonly database: OpenDatabase
  readonly upstream: GatedUpstream
  readonly nodes: readonly ClusterNode[]
  readonly #adminKey: string

  private constructor(
    database: OpenDatabase,
    upstream: GatedUpstream,
    nodes: readonly ClusterNode[],
    adminKey: string,
  ) {
    this.database = database
    this.upstream = upstream
    this.nodes = nodes
    this.#adminKey = adminKey
  }

  /** Starts one node per environment, the only difference between them. */
  static async start(own: readonly Environment[], database: OpenDatabase | null = null): Promise<Cluster> {
    const ownDatabase = database ?? (await openTestDatabase())
    const upstream = await startGatedUpstream({ header: 'user-agent', gates: /^gate/ })
    const adminKey = randomBytes(24).toString('hex')
    const shared: Environment = {
      TOLLGATE_PEPPER: randomBytes(24).toString('hex'),
      TOLLGATE_ADMIN_KEY: adminKey,
      TOLLGATE_MESSAGES_URL: upstream.url,
      TOLLGATE_CHAT_URL: `${upstream.url}/v1`,
      TOLLGATE_LOG_LEVEL: 'warn',
    }
    const nodes = await Promise.all(
      own.map((more) => ClusterNode.prepare(ownDatabase.url, { ...shared, ...more })),
    )
    const cluster = new Cluster(ownDatabase, upstream, nodes, adminKey)
    try {
      await Promise.all(nodes.map((node) => node.start()))
    } catch (error) {
      await cluster.close()
      throw error
    }
    return cluster
  }

  node(i: number): ClusterNode {
    const node = this.nodes[i % this.nodes.length]
    assert.ok(node !== undefined)
    return node
  }

  /** A request to the management API of one node; fails if the response is an error. */
  async manage(
    i: number,
    method: 'GET' | 'POST' | 'PATCH',
    path: string,
    body?: Json,
    headers: Record<string, string> = {},
  ) {
    const reply = await request(this.node(i).url + path, {
      method,
      signal: AbortSignal.timeout(MANAGED_WITHIN_MS),
      headers: { authorization: `Bearer ${this.#adminKey}`, 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await reply.body.text()
    if (reply.statusCode >= 300) throw new ManagementError(reply.statusCode, `${method} ${path}: ${text}`)
    return JSON.parse(text) as Json
  }

  async scrape(i: number): Promise<ReadonlyMap<string, Family>> {
    const reply = await request(`${this.node(i).url}/metrics`, {
      signal: AbortSignal.timeout(MANAGED_WITHIN_MS),
      headers: { authorization: `Bearer ${this.#adminKey}` },
    })
    assert.equal(reply.statusCode, 200)
    return readOpenMetrics(await reply.body.text())
  }

  async createKey(fields: Json = {}, i = 0): Promise<{ id: string; key: string }> {
    const made = await this.manage(i, 'POST', '/v1/keys', { name: 'cluster', ...fields })
    return { id: String(made['id']), key: String(made['key']) }
  }

  /** The records of a key's calls by name. Fails if a call has two records. */
  async callsOf(keyId: string): Promise<Map<string, Json>> {
    const holds = await this.database.query('SELECT * FROM hold WHERE key_id = $1', [keyId])
    const calls = await this.database.query('SELECT * FROM call WHERE key_id = $1', [keyId])
    const closed = new Set(calls.map(({ id }) => id))
    const rows = [...calls, ...holds.filter(({ id }) => !closed.has(id))]
    const byName = new Map(rows.map((row) => [String(row['user_agent']), row]))
    assert.equal(byName.size, rows.length, 'a call has two records')
    return byName
  }

  async nowMs(): Promise<number> {
    const [row] = await this.database.query('SELECT now_ms() AS now')
    return Number(row?.['now'])
  }

  async assertBalanced(): Promise<void> {
    const open = await this.database.query('SELECT user_agent FROM hold')
    assert.deepEqual(open, [], 'calls are in flight')
    const held = await this.database.query(
      'SELECT held_nanos FROM account UNION ALL SELECT held_nanos FROM budget',
    )
    assert.ok(
      held.every((row) => row['held_nanos'] === 0n),
      'something is held',
    )
    await assertConserved(this.database)
  }

  async close(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.close()))
    await this.upstream.close()
    await this.database.close()
  }
}

export class ManagementError extends Error {
  override readonly name = 'ManagementError'
  readonly status: number

  constructor(status: number, message: string) {
    super(`${message} (${status})`)
    this.status = status
  }
}
