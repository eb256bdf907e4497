import { until } from '../support/until.ts'
import { type ClientReply, sendCall } from './send-call.ts'

export interface HammeredKey {
  readonly id: string
  readonly key: string
}

interface Sent {
  readonly number: number
  readonly name: string
  readonly node: number
  readonly keyId: string
}

export interface Answered extends Sent {
  readonly status: number
}

const CALLERS = 3

export class Hammer {
  readonly answers: Answered[] = []
  readonly #round: string
  #sent = 0
  #over = false
  readonly #callers: Promise<void>[] = []

  constructor(round: string, nodeUrls: readonly string[], keys: readonly HammeredKey[]) {
    this.#round = round
    for (const [node, url] of nodeUrls.entries()) {
      for (const key of keys) {
        for (let i = 0; i < CALLERS; i++) this.#callers.push(this.#call(node, url, key, i))
      }
    }
  }

  get next(): number {
    return this.#sent
  }

  /** Resolves when each node has answered this many calls of each key, counting from call number `from`. */
  async answered(
    from: number,
    nodes: readonly number[],
    keys: readonly HammeredKey[],
    count: number,
  ): Promise<void> {
    const has = (node: number, keyId: string) =>
      this.answers.filter((call) => call.number >= from && call.node === node && call.keyId === keyId).length
    await until(`nodes ${nodes} have answered`, async () =>
      nodes.every((node) => keys.every(({ id }) => has(node, id) >= count)),
    )
  }

  async stop(): Promise<void> {
    this.#over = true
    await Promise.all(this.#callers)
  }

  async #call(node: number, url: string, { id, key }: HammeredKey, caller: number): Promise<void> {
    while (!this.#over) {
      const number = this.#sent++
      const name = `${this.#round}-${number}`
      const surface = caller % 2 === 0 ? 'messages' : 'chat'
      const { status }: ClientReply = await sendCall(url, {
        ...{ name, key, surface, stream: number % 3 === 0, tokens: 3, maxTokens: 50 },
      })
      this.answers.push({ number, name, node, keyId: id, status })
    }
  }
}
