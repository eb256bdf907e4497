import assert from 'node:assert/strict'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { runTollgate } from '../support/tollgate-process.ts'
import { until } from '../support/until.ts'
import { Cluster } from './cluster.ts'

const KEYS = { messagesKey: 'pm', chatKey: 'pc' }
const DAY_MS = 86_400_000
const NODES = 3
const MAKERS = 6

type Json = Record<string, unknown>

interface Used {
  readonly requests: number
  readonly input: number
  readonly output: number
}

/** Deferred objects of every kind on nodes that are killed repeatedly, while clients read their objects. */
export class DeferredRun {
  readonly #cluster: Cluster
  readonly #simulator: Simulator
  readonly #report: (deed: string) => void
  #workMs: number
  #made = 0
  #kills = 0

  private constructor(cluster: Cluster, simulator: Simulator, report: (deed: string) => void) {
    this.#cluster = cluster
    this.#simulator = simulator
    this.#report = report
    this.#workMs = 0
  }

  static async start(report: (deed: string) => void = () => {}): Promise<DeferredRun> {
    let run: DeferredRun | null = null
    const simulator = await startSimulator({ ...KEYS, clock: () => run?.workMs ?? 0 })
    const environment = {
      ...{ TOLLGATE_MESSAGES_URL: simulator.messagesUrl, TOLLGATE_MESSAGES_KEY: KEYS.messagesKey },
      ...{ TOLLGATE_CHAT_URL: simulator.chatUrl, TOLLGATE_CHAT_KEY: KEYS.chatKey },
    }
    const cluster = await Cluster.start(Array.from({ length: NODES }, () => environment))
    run = new DeferredRun(cluster, simulator, report)
    return run
  }

  get workMs(): number {
    return this.#workMs
  }

  /** Fails unless every object settled exactly once, at the usage that upstream states. */
  async play(objects: number, kills: number): Promise<void> {
    const { key } = await this.#cluster.createKey({ monthly_budget_usd: 1_000_000 })
    const making = this.#makeAll(objects, key)
    while (this.#kills < kills / 2 && this.#made < objects) await this.#killOne()
    await making
    const open = await this.#openObjects()
    this.#report(`${open.length} of ${objects} objects are open after ${this.#kills} kills`)
    assert.ok(open.length >= objects, `${open.length} of ${objects} objects were made`)

    this.#workMs += DAY_MS
    const looking = this.#lookAtAll(open, key)
    while (this.#kills < kills) await this.#killOne()
    // The claims of killed nodes would last for ten minutes.
    await this.#cluster.database.query('UPDATE hold SET claimed_until_ms = 0 WHERE due_at_ms IS NOT NULL')
    const withinMs = 60_000 + objects * 1_000
    await until(
      'all are settled',
      async () => {
        await this.#cluster.database.query('UPDATE hold SET due_at_ms = 0 WHERE due_at_ms IS NOT NULL')
        const left = await this.#openObjects()
        this.#report(`${left.length} are open`)
        return left.length === 0
      },
      { withinMs, everyMs: 1_000 },
    )
    await looking
    await this.#assertExact(open)
  }

  async close(): Promise<void> {
    await this.#cluster.close()
    await this.#simulator.close()
  }

  async #killOne(): Promise<void> {
    const node = this.#cluster.node(this.#kills++)
    await node.kill()
    this.#report(`node ${this.#kills % NODES} was killed`)
    await node.start()
  }

  async #makeAll(objects: number, key: string): Promise<void> {
    const make = async (): Promise<void> => {
      for (let i = 0; this.#made < objects; i++) {
        const kinds = [makeMessages, makeChat, makeResponse]
        const serving = this.#cluster.nodes.filter((node) => node.isServing)
        // The node may be killed: then its object is lost or not, as the ledger shows.
        const url = serving[Math.floor(i / kinds.length) % serving.length]?.url ?? ''
        await kinds[i % kinds.length]?.(url, key, i).then(
          () => this.#made++,
          () => {},
        )
      }
    }
    await Promise.all(Array.from({ length: MAKERS }, make))
  }

  async #lookAtAll(open: readonly Json[], key: string): Promise<void> {
    const headers = { authorization: `Bearer ${key}`, ...VERSIONS }
    for (const [i, call] of open.entries()) {
      const node = this.#cluster.node(i)
      if (i % 2 === 0 || !node.isServing) continue
      await fetch(node.url + pathOf(String(call['object_id'])), { headers }).then(
        (reply) => reply.arrayBuffer(),
        () => {},
      )
    }
  }

  async #openObjects(): Promise<readonly Json[]> {
    return await this.#cluster.database.query('SELECT * FROM hold WHERE due_at_ms IS NOT NULL')
  }

  async #assertExact(open: readonly Json[]): Promise<void> {
    for (const { id, object_id } of open) {
      const [row] = await this.#cluster.database.query(
        `SELECT sum(requests)::bigint AS requests, sum(input_tokens)::bigint AS input, sum(output_tokens)::bigint AS output,
           bool_and(state = 'settled') AS settled FROM call WHERE id = $1 OR parent_id = $1`,
        [id],
      )
      const { settled, ...booked } = row ?? {}
      assert.equal(settled, true, String(object_id))
      const figures = Object.fromEntries(Object.entries(booked).map(([name, value]) => [name, Number(value)]))
      assert.deepEqual(figures, await this.#usedBy(String(object_id)), String(object_id))
    }
    await this.#cluster.assertBalanced()
    const { code, stdout } = await runTollgate(['audit'], {
      TOLLGATE_DATABASE_URL: this.#cluster.database.url,
    })
    assert.equal(code, 0, stdout)
  }

  async #usedBy(id: string): Promise<Used> {
    const { messagesUrl, chatUrl } = this.#simulator
    const chat = async (path: string) =>
      await (
        await fetch(chatUrl + path, { headers: { authorization: `Bearer ${KEYS.chatKey}`, ...VERSIONS } })
      ).text()
    if (id.startsWith('resp_')) return add([(JSON.parse(await chat(`/responses/${id}`)) as Answered).usage])
    if (id.startsWith('batch_')) {
      const { output_file_id } = JSON.parse(await chat(`/batches/${id}`)) as { output_file_id: string }
      return add(
        linesIn<{ response: { body: Answered } }>(await chat(`/files/${output_file_id}/content`)).map(
          ({ response }) => response.body.usage,
        ),
      )
    }
    const headers = { 'x-api-key': KEYS.messagesKey, 'anthropic-version': '2023-06-01' }
    const results = await (
      await fetch(`${messagesUrl}/v1/messages/batches/${id}/results`, { headers })
    ).text()
    return add(linesIn<{ result: { message: Answered } }>(results).map(({ result }) => result.message.usage))
  }
}

function pathOf(id: string): string {
  if (id.startsWith('resp_')) return `/v1/responses/${id}`
  return id.startsWith('batch_') ? `/v1/batches/${id}` : `/v1/messages/batches/${id}`
}

type Stated = Readonly<Record<string, number>>
interface Answered {
  readonly usage: Stated
}

function linesIn<Line>(text: string): readonly Line[] {
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)
}

function add(usages: readonly Stated[]): Used {
  const sum = (...names: readonly string[]) =>
    usages.reduce((total, usage) => total + Number(usage[names.find((name) => name in usage) ?? ''] ?? 0), 0)
  return {
    requests: usages.length,
    input: sum('input_tokens', 'prompt_tokens'),
    output: sum('output_tokens', 'completion_tokens'),
  }
}

async function post(
  url: string,
  key: string,
  body: string | FormData,
  more: Record<string, string> = {},
): Promise<Json> {
  const headers = { authorization: `Bearer ${key}`, ...VERSIONS, ...more }
  const reply = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(30_000) })
  assert.equal(reply.status, 200)
  return (await reply.json()) as Json
}

const VERSIONS = { 'anthropic-version': '2023-06-01' }
const JSON_TYPE = { 'content-type': 'application/json' }
const asked = (i: number) => [{ role: 'user', content: `Write the number ${i}` }]

async function makeMessages(url: string, key: string, i: number): Promise<void> {
  const requests = ['claude-haiku-5-5', 'claude-opus-5', 'claude-haiku-5-5'].map((model, n) => ({
    custom_id: `r${n}`,
    params: { model, max_tokens: 40, messages: asked(i) },
  }))
  await post(`${url}/v1/messages/batches`, key, JSON.stringify({ requests }), JSON_TYPE)
}

async function makeChat(url: string, key: string, i: number): Promise<void> {
  const endpoint = '/v1/chat/completions'
  const lines = ['gpt-6-luna', 'gpt-6-sol'].map((model) => {
    const body = { model, max_completion_tokens: 40, messages: asked(i) }
    return JSON.stringify({ custom_id: model, method: 'POST', url: endpoint, body })
  })
  const form = new FormData()
  form.set('purpose', 'batch')
  form.set('file', new Blob([lines.join('\n')]), 'batch.jsonl')
  const { id } = await post(`${url}/v1/files`, key, form)
  const batch = { input_file_id: id, endpoint, completion_window: '24h' }
  await post(`${url}/v1/batches`, key, JSON.stringify(batch), JSON_TYPE)
}

async function makeResponse(url: string, key: string, i: number): Promise<void> {
  const body = {
    model: 'gpt-6-luna',
    input: `Write the number ${i}`,
    max_output_tokens: 40,
    background: true,
  }
  await post(`${url}/v1/responses`, key, JSON.stringify(body), JSON_TYPE)
}
