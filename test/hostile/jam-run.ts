import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { assertBalanced } from '../billing/bench-of-one.ts'
import { type MeasuredGateway, startMeasuredGateway } from '../support/measured-gateway.ts'
import { openDatabaseReader } from '../support/read-database.ts'
import { until } from '../support/until.ts'
import { attacks, type Battlefield, type JamScale } from './jam-attacks.ts'
import { WellBehaved } from './jam-caller.ts'
import { type JamUpstream, startJamUpstream } from './jam-upstream.ts'

/** How much more memory a gateway may hold after an attack: 40 MiB are spare memory for bodies. */
const KEPT_BYTES_MAX = 64 * 1024 * 1024

/** Attackers wait for the well-behaved key's calls: if one of these waited for them, the run would hang. */
export class JamRun {
  readonly outcomes = new Map<string, number>()
  readonly #folder: string
  readonly #upstream: JamUpstream
  readonly #gateway: MeasuredGateway
  readonly #scale: JamScale
  readonly #well: WellBehaved
  #rounds = 0
  #round = Promise.withResolvers<void>()
  #isOver = false
  #made: Promise<unknown> = Promise.resolve()
  #passedMost = 0
  #keptBytes = 0
  #overheadMs: readonly number[] = []

  private constructor(
    folder: string,
    upstream: JamUpstream,
    gateway: MeasuredGateway,
    key: string,
    scale: JamScale,
  ) {
    this.#folder = folder
    this.#upstream = upstream
    this.#gateway = gateway
    this.#scale = scale
    this.#well = new WellBehaved(gateway.url, key)
  }

  static async start(scale: JamScale): Promise<JamRun> {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-jam-'))
    const config = join(folder, 'tollgate.json')
    writeFileSync(config, JSON.stringify({ limits: { calls_in_flight_per_key: scale.callsPerKeyMax } }))
    const upstream = await startJamUpstream()
    const environment = {
      TOLLGATE_CONFIG: config,
      TOLLGATE_MESSAGES_URL: upstream.url,
      TOLLGATE_CHAT_URL: `${upstream.url}/v1`,
      TOLLGATE_LOG_LEVEL: 'silent',
    }
    const gateway = await startMeasuredGateway(environment)
    const { key } = await gateway.createKey('well-behaved')
    return new JamRun(folder, upstream, gateway, key, scale)
  }

  async play(forMs: number, report: (progress: string) => void = () => {}): Promise<void> {
    // The first round loads lazy modules.
    await this.#well.round()
    const heldBytes = await this.#gateway.heldBytes()
    const stopMs = performance.now() + forMs
    const field = this.#battlefield()
    const attackers = Promise.all(attacks.map((attack) => attack(field)))
    try {
      while (this.#rounds < 3 || performance.now() < stopMs) {
        await this.#well.round()
        this.#passedMost = Math.max(this.#passedMost, this.#upstream.held)
        this.#rounds += 1
        this.#nextRound()
        if (this.#rounds % 4 === 0) report(this.summary)
      }
    } finally {
      this.#isOver = true
    }
    await this.#letGo(attackers)
    await this.#check(heldBytes)
  }

  get summary(): string {
    const count = [...this.outcomes.values()].reduce((sum, n) => sum + n, 0)
    return `${this.#well.calls} well-behaved calls in ${this.#rounds} rounds, ${count} hostile requests`
  }

  report(): string {
    const lines = [...this.outcomes].sort().map(([what, count]) => `  ${what}: ${count}`)
    // The caller's process is busy with the attacks; the gateway's figure is from its own clock.
    lines.push(
      `  well-behaved calls: ${spread(this.#well.tookMs)}; by the gateway: ${spread(this.#overheadMs)}`,
    )
    lines.push(`  held upstream and passed by: ${this.#passedMost}; late bytes: ${this.#upstream.lateBytes}`)
    lines.push(`  bytes of memory kept afterwards: ${this.#keptBytes}`)
    return lines.join('\n')
  }

  async close(): Promise<void> {
    this.#isOver = true
    await this.#gateway.close()
    await this.#upstream.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #battlefield(): Battlefield {
    const run = this
    return {
      port: this.#gateway.port,
      scale: this.#scale,
      get isOver() {
        return run.#isOver
      },
      nextRound: () => this.#round.promise,
      newKey: (name, fields) => {
        // Keys are created one by one, on one connection.
        const made = this.#made.then(() => this.#gateway.createKey(name, fields))
        this.#made = made
        return made.then(({ key }) => key)
      },
      note: (attack, status) => {
        const outcome = `${attack}: ${status}`
        this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1)
      },
    }
  }

  #nextRound(): void {
    this.#upstream.release()
    this.#round.resolve()
    this.#round = Promise.withResolvers()
  }

  async #letGo(attackers: Promise<unknown>): Promise<void> {
    let gone = false
    const left = attackers.finally(() => {
      gone = true
    })
    await until('all attackers have disconnected', async () => {
      this.#nextRound()
      return gone
    })
    await left
    await this.#well.close()
  }

  async #check(heldBytes: number): Promise<void> {
    await this.#checkLedger()
    const failed = [...this.outcomes.keys()].filter((what) => /: 50[0124]$/.test(what))
    assert.deepEqual(failed, [], this.report())
    assert.ok(this.#passedMost > 0, 'calls of another key were still in flight when this key had its answers')
    // The memory of idle upstream connections is freed by a later garbage collection.
    const isGivenBack = async () => {
      this.#keptBytes = (await this.#gateway.heldBytes()) - heldBytes
      return this.#keptBytes <= KEPT_BYTES_MAX
    }
    await until('memory is released', isGivenBack, { everyMs: 200 }).catch(() => {
      assert.fail(`${this.#keptBytes} bytes are kept: ${this.report()}`)
    })
  }

  async #checkLedger(): Promise<void> {
    await assertBalanced(this.#gateway)
    const database = openDatabaseReader(this.#gateway)
    try {
      const ids = new Set(this.#well.requestIds)
      const calls = (await database.read('SELECT * FROM call')).filter((call) => ids.has(String(call['id'])))
      assert.equal(calls.length, this.#well.calls, 'each of its calls has a record')
      for (const call of calls) assert.equal(call['state'], 'settled', String(call['id']))
      this.#overheadMs = calls.map((call) => Number(call['overhead_ms']))
    } finally {
      await database.close()
    }
  }
}

function spread(tookMs: readonly number[]): string {
  const sorted = tookMs.toSorted((a, b) => a - b)
  const at = (part: number) => `${Math.round(sorted[Math.floor(sorted.length * part)] ?? 0)} ms`
  return `p50 ${at(0.5)}, p99 ${at(0.99)}`
}
