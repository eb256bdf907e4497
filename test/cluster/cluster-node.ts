import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Environment } from '../../src/config/read-config.ts'
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'
import { type ServingProcess, serveTollgate } from '../support/tollgate-process.ts'

/** A node as its operator runs it: a process with a data directory and its own connection to the database. */
export class ClusterNode {
  readonly wire: FaultProxy
  readonly #environment: Environment
  readonly #dataDir = mkdtempSync(join(tmpdir(), 'tollgate-node-'))
  #process: ServingProcess | null = null
  /** Starts and ends run one after the other. */
  #changing: Promise<unknown> = Promise.resolve()

  private constructor(wire: FaultProxy, environment: Environment) {
    this.wire = wire
    this.#environment = environment
  }

  static async prepare(databaseUrl: string, environment: Environment): Promise<ClusterNode> {
    return new ClusterNode(await startFaultProxy(databaseUrl), environment)
  }

  get url(): string {
    if (this.#process === null) throw new Error('this node does not serve')
    return this.#process.url
  }

  get isServing(): boolean {
    return this.#process !== null
  }

  get spooledCalls(): number {
    const file = join(this.#dataDir, 'spool', 'settlements.jsonl')
    return existsSync(file) ? readFileSync(file, 'utf8').split('\n').length - 1 : 0
  }

  get refusedBytes(): number {
    const file = join(this.#dataDir, 'spool', 'refused.jsonl')
    return statSync(file, { throwIfNoEntry: false })?.size ?? 0
  }

  /** Starts the node unless it runs, with its previous data directory. */
  start(): Promise<void> {
    return this.#inTurn(async () => {
      this.#process ??= await serveTollgate({
        TOLLGATE_DATABASE_URL: this.wire.url,
        TOLLGATE_DATA_DIR: this.#dataDir,
        ...this.#environment,
      })
    })
  }

  pause(): void {
    this.#process?.signal('SIGSTOP')
  }

  resume(): void {
    this.#process?.signal('SIGCONT')
  }

  kill(): Promise<void> {
    return this.#inTurn(async () => {
      const gone = this.#process
      this.#process = null
      await gone?.dispose()
    })
  }

  stop(): Promise<void> {
    return this.#inTurn(async () => {
      const gone = this.#process
      this.#process = null
      gone?.signal('SIGTERM')
      await gone?.finished
      await gone?.dispose()
    })
  }

  async close(): Promise<void> {
    await this.kill()
    await this.wire.close()
    rmSync(this.#dataDir, { recursive: true, force: true })
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#changing.then(work)
    this.#changing = done.catch(() => {})
    return done
  }
}
