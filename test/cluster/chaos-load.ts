import { setTimeout as sleep } from 'node:timers/promises'
import { Random } from '../support/random.ts'
import type { Cluster } from './cluster.ts'
import { type ClientCall, expectedBytes, sendCall } from './send-call.ts'

export interface LoadedKey {
  readonly id: string
  readonly key: string
  readonly capNanos: bigint | null
}

export interface Served {
  readonly call: ClientCall
  /** The cost in headers or trailers; absent if the database could not be reached in time. */
  readonly costUsd: string | undefined
}

const CALLERS_PER_NODE = 4
const MAX_TOKENS = 400
/** A client's timeout; a client that gives up leaves its call to the gateway. */
const PATIENCE_MS = 6_000

export class ChaosLoad {
  readonly served: Served[] = []
  readonly statuses = new Map<string, number>()
  readonly mangled: string[] = []
  sent = 0
  readonly #cluster: Cluster
  readonly #keys: readonly LoadedKey[]
  #over = false
  readonly #callers: Promise<void>[] = []

  constructor(cluster: Cluster, keys: readonly LoadedKey[], seed: number) {
    this.#cluster = cluster
    this.#keys = keys
    for (const node of cluster.nodes.keys()) {
      for (let i = 0; i < CALLERS_PER_NODE; i++) {
        this.#callers.push(this.#call(node, new Random(seed * 1_000 + node * 100 + i)))
      }
    }
  }

  async stop(): Promise<void> {
    this.#over = true
    await Promise.all(this.#callers)
  }

  async #call(i: number, random: Random): Promise<void> {
    const node = this.#cluster.node(i)
    while (!this.#over) {
      await sleep(random.from(5, 60))
      if (!node.isServing) continue
      const patienceMs = random.oneIn(15) ? random.from(1, 150) : PATIENCE_MS
      await this.#send(node.url, this.#choose(random), patienceMs)
    }
  }

  #choose(random: Random): ClientCall {
    return {
      name: `chaos-${this.sent++}`,
      key: random.pick(this.#keys).key,
      surface: random.pick(['messages', 'chat'] as const),
      stream: random.oneIn(2),
      tokens: random.from(20, MAX_TOKENS),
      maxTokens: MAX_TOKENS,
      paceMs: random.oneIn(3) ? random.from(10, 120) : 0,
    }
  }

  async #send(url: string, call: ClientCall, patienceMs: number): Promise<void> {
    let outcome = 'broken off'
    try {
      const { status, text, header } = await sendCall(url, call, AbortSignal.timeout(patienceMs))
      outcome = String(status)
      if (status === 200) {
        if (text !== expectedBytes(call)) this.mangled.push(call.name)
        this.served.push({ call, costUsd: header('x-svc-cost-usd') })
      }
    } catch {
      // The node died, or the client left. The records show whether the call counts.
    }
    this.statuses.set(outcome, (this.statuses.get(outcome) ?? 0) + 1)
  }
}
