import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Agent, request } from 'undici'
import { parseUsd } from '../../src/kernel/money.ts'
import { assertConserved } from '../store/conformance/conservation.ts'
import { assertCrossings, budgetEvents } from '../support/budget-events.ts'
import { type GatedUpstream, startGatedUpstream } from '../support/gated-upstream.ts'
import { openDatabaseReader, type Rows } from '../support/read-database.ts'
import { createTestDatabase, databaseVariable, type OwnDatabase } from '../support/test-store.ts'
import { NANOS_PER_TOKEN } from '../support/upstream-answer.ts'

const program = fileURLToPath(new URL('./doomed-gateway.ts', import.meta.url))

interface Life {
  readonly process: ChildProcess
  readonly url: string
  readonly ended: Promise<unknown>
}

/** A run crosses half of its cap after CALLS_TO_HALF calls; the cap has room for CALLS_TO_CAP more. */
const CALLS_TO_HALF = 8n
const CALLS_TO_CAP = 100n

/** In the first runs half of the cap is too far away to be crossed. */
const LIVES_UNTIL_CROSSED = 12

interface CapEpoch {
  readonly capNanos: bigint
  readonly spentNanos: bigint
}

interface Used {
  readonly requests: number
  readonly costNanos: bigint
}

const TOKENS = 200
const CALL_NANOS = NANOS_PER_TOKEN * BigInt(TOKENS)

export class CrashRun {
  readonly #folder = mkdtempSync(join(tmpdir(), 'tollgate-crash-'))
  readonly #upstream: GatedUpstream
  readonly #place: OwnDatabase
  readonly #answered: string[] = []
  /** The sum of the costs in headers and trailers. */
  #reportedNanos = 0n
  readonly #caps: CapEpoch[] = []
  #key = ''
  #keyId = ''
  #calls = 0

  private constructor(upstream: GatedUpstream, place: OwnDatabase) {
    this.#upstream = upstream
    this.#place = place
  }

  static async start(): Promise<CrashRun> {
    const upstream = await startGatedUpstream({ header: 'user-agent', gates: /^gate/ })
    return new CrashRun(upstream, await createTestDatabase())
  }

  /** A run that dies at the given point, with calls in flight. */
  async dieAt(point: string, nth: number, parallel: number): Promise<void> {
    const life = await this.#live(point, String(nth))
    await this.#hammer(life, parallel)
    await life.ended
  }

  /** A run that is killed at an arbitrary point after this many answered calls. */
  async dieAfter(answers: number, parallel: number): Promise<void> {
    const life = await this.#live('never', '1')
    const goal = this.#answered.length + answers
    const kill = () => {
      if (this.#answered.length >= goal) life.process.kill('SIGKILL')
    }
    await this.#hammer(life, parallel, kill)
    life.process.kill('SIGKILL')
    await life.ended
  }

  async recoverAndCheck(): Promise<void> {
    const life = await this.#live('never', '1')
    const usage = await this.#readUsage(life.url)
    life.process.kill('SIGTERM')
    await life.ended
    const database = openDatabaseReader({ dataDir: this.#folder, databaseUrl: this.#place.databaseUrl })
    try {
      const rows = (table: string) => database.read(`SELECT * FROM ${table}`)
      await assertConserved({ rows })
      const calls = await rows('call')
      assert.equal((await rows('account'))[0]?.['held_nanos'], 0n, 'nothing stays held')
      assert.equal(calls.filter((call) => call['state'] === 'in_flight').length, 0)

      const byName = Map.groupBy(calls, (call) => String(call['user_agent']))
      for (const name of this.#upstream.names) {
        assert.equal(byName.get(name)?.length, 1, `${name} reached upstream and has one record`)
      }
      for (const name of this.#answered) {
        const call = byName.get(name)?.[0]
        assert.equal(call?.['state'], 'settled', `${name} was answered and is settled`)
        assert.equal(call?.['cost_nanos'], CALL_NANOS, `${name} was answered and is charged`)
      }
      for (const [name, records] of byName) assert.equal(records.length, 1, `${name} has one record`)

      // Some calls settle although the kill cut off their client before the reply.
      const settled = calls.filter((call) => call['state'] === 'settled')
      const answered = new Set(this.#answered)
      const unheard = settled.filter((call) => !answered.has(String(call['user_agent'])))
      const unheardNanos = unheard.reduce((sum, call) => sum + BigInt(String(call['cost_nanos'])), 0n)
      assert.equal(usage.requests, settled.length, 'usage has exactly the settled calls')
      assert.equal(
        usage.costNanos,
        this.#reportedNanos + unheardNanos,
        'usage has what the clients got as their costs',
      )
      this.#checkEvents(await rows('event'), calls)
    } finally {
      await database.close()
    }
  }

  /** Every crossed threshold has one event, and no other has one. */
  #checkEvents(events: Rows, calls: Rows): void {
    const crossings = budgetEvents(events, this.#keyId)
    assertCrossings(crossings, calls)
    if (this.#caps.length > LIVES_UNTIL_CROSSED) assert.ok(crossings.length > 0, 'no threshold was crossed')
    for (const [i, { capNanos, spentNanos }] of this.#caps.entries()) {
      const endNanos = this.#caps[i + 1]?.spentNanos ?? 0n
      if (spentNanos * 2n >= capNanos || endNanos * 2n < capNanos) continue
      const ofCap = crossings.filter((event) => event.capNanos === capNanos)
      assert.deepEqual(
        ofCap.map(({ percent }) => percent),
        [50],
        `half of cap ${i} was crossed`,
      )
    }
  }

  get summary(): string {
    return `${this.#calls} calls sent, ${this.#upstream.names.length} reached upstream, ${this.#answered.length} answered`
  }

  async close(): Promise<void> {
    await this.#upstream.close()
    await this.#place.remove()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #live(point: string, nth: string): Promise<Life> {
    const child = spawn(process.execPath, [program, point, nth], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        PATH: process.env['PATH'],
        NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
        TOLLGATE_PORT: '0',
        TOLLGATE_DATA_DIR: this.#folder,
        TOLLGATE_MESSAGES_URL: this.#upstream.url,
        TOLLGATE_LOG_LEVEL: 'silent',
        ...databaseVariable(this.#place),
      },
    })
    const ended = once(child, 'exit')
    const [line] = (await once(child.stdout, 'data')) as [Buffer]
    const { port } = JSON.parse(line.toString()) as { port: number }
    const url = `http://127.0.0.1:${port}`
    if (this.#key === '') await this.#createKey(url)
    await this.#setCap(url)
    return { process: child, url, ended }
  }

  #adminKey(): string {
    return readFileSync(join(this.#folder, 'admin-key'), 'utf8').trim()
  }

  /** Usage over the days that a test can take. In every grouping the buckets have the same sum. */
  async #readUsage(url: string): Promise<Used> {
    const day = (offset: number) => new Date(Date.now() + offset * 86_400_000).toISOString().slice(0, 10)
    const range = `start=${day(-30)}&end=${day(1)}`
    const read = async (query: string): Promise<Used> => {
      const reply = await request(`${url}/v1/usage?${range}${query}`, {
        headers: { authorization: `Bearer ${this.#adminKey()}` },
      })
      const [data = ''] = (await reply.body.text()).split('"total":')
      const buckets = [...data.matchAll(/"requests":(\d+),.*?"cost_usd":([\d.]+),/g)]
      return {
        requests: buckets.reduce((sum, [, requests]) => sum + Number(requests), 0),
        costNanos: buckets.reduce((sum, [, , cost = '']) => sum + (parseUsd(cost) ?? -1n), 0n),
      }
    }
    const whole = await read('')
    for (const groups of ['day', 'model', 'key', 'day,model', 'day,key', 'model,key', 'day,model,key']) {
      assert.deepEqual(await read(`&group_by=${groups}`), whole, `usage by ${groups}`)
    }
    return whole
  }

  async #createKey(url: string): Promise<void> {
    const { id, key } = await this.#manage(url, 'POST', '/v1/keys', { name: 'crash' })
    this.#keyId = String(id)
    this.#key = String(key)
  }

  /** A cap of which this run crosses half, and which no call reaches. */
  async #setCap(url: string): Promise<void> {
    const spentOf = (key: Record<string, unknown>) => parseUsd(String(key['month_spend_usd'])) ?? -1n
    const path = `/v1/keys/${this.#keyId}`
    const spent = spentOf(await this.#manage(url, 'GET', path))
    const half = 2n * (spent + CALLS_TO_HALF * CALL_NANOS)
    const least = spent + CALLS_TO_CAP * CALL_NANOS
    const capNanos = half > least ? half : least
    const edited = await this.#manage(url, 'PATCH', path, { monthly_budget_usd: Number(capNanos) / 1e9 })
    this.#caps.push({ capNanos, spentNanos: spentOf(edited) })
  }

  async #manage(url: string, method: 'GET' | 'POST' | 'PATCH', path: string, body: unknown = undefined) {
    const reply = await request(url + path, {
      method,
      headers: { authorization: `Bearer ${this.#adminKey()}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return (await reply.body.json()) as Record<string, unknown>
  }

  async #hammer(life: Life, parallel: number, onAnswer = () => {}): Promise<void> {
    const dispatcher = new Agent({ connections: parallel })
    let alive = true
    life.ended.then(() => {
      alive = false
    })
    const caller = async () => {
      while (alive) {
        const name = `call-${this.#calls++}`
        const body = JSON.stringify({
          model: 'claude-haiku-5-5',
          max_tokens: 256,
          stream: this.#calls % 2 === 0,
          messages: [],
        })
        try {
          const reply = await request(`${life.url}/v1/messages`, {
            dispatcher,
            method: 'POST',
            headers: { 'x-api-key': this.#key, 'user-agent': name, 'x-tokens': String(TOKENS) },
            body,
          })
          await reply.body.text()
          if (reply.statusCode === 200) {
            this.#answered.push(name)
            const reported = reply.headers['x-svc-cost-usd'] ?? reply.trailers['x-svc-cost-usd']
            this.#reportedNanos += parseUsd(String(reported)) ?? 0n
            onAnswer()
          }
        } catch {
          // The connection broke because the process died. The records show whether the call counts.
        }
      }
    }
    await Promise.all(Array.from({ length: parallel }, caller))
    await dispatcher.destroy()
  }
}
