import { setTimeout as sleep } from 'node:timers/promises'
import { type Cluster, ManagementError } from './cluster.ts'

const TOP_UP_USD = 0.5

/** Each command is repeated on one node after the other until it is acknowledged; then once more. */
export class ChaosLedger {
  /** The keys whose end was acknowledged, which must stay ended. */
  readonly ended = new Set<string>()
  topUps = 0
  readonly #cluster: Cluster
  readonly #underWay = new Set<Promise<void>>()
  #over = false

  constructor(cluster: Cluster) {
    this.#cluster = cluster
  }

  revoke(keyId: string, node: number): void {
    this.#do(node, async (i) => {
      await this.#cluster.manage(i, 'POST', `/v1/keys/${keyId}/revoke`)
      this.ended.add(keyId)
    })
  }

  emptyCap(keyId: string, node: number): void {
    this.#do(node, async (i) => {
      await this.#cluster.manage(i, 'PATCH', `/v1/keys/${keyId}`, { monthly_budget_usd: 0 })
      this.ended.add(keyId)
    })
  }

  topUp(node: number): void {
    const once = { 'idempotency-key': `top-up-${this.topUps++}` }
    const body = { amount_usd: TOP_UP_USD, reason: 'chaos' }
    this.#do(node, async (i) => {
      await this.#cluster.manage(i, 'POST', '/gateway/v1/credits', body, once)
      await this.#cluster.manage(i + 1, 'POST', '/gateway/v1/credits', body, once)
    })
  }

  /** Resolves when each command is acknowledged, which happens once all faults are healed. */
  async finish(): Promise<void> {
    await Promise.all(this.#underWay)
    this.#over = true
  }

  #do(node: number, command: (node: number) => Promise<void>): void {
    const doing = this.#repeat(node, command).finally(() => this.#underWay.delete(doing))
    this.#underWay.add(doing)
  }

  async #repeat(node: number, command: (node: number) => Promise<void>): Promise<void> {
    for (let i = node; !this.#over; i++) {
      try {
        return await command(i)
      } catch (error) {
        // Another command has ended the key meanwhile, so it cannot change.
        if (error instanceof ManagementError && error.status === 409) return
        // The node is dead, cannot reach the database, or was killed before it could answer.
        await sleep(100)
      }
    }
  }
}
