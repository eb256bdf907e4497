import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { after, test } from '../support/suite.ts'
import { createTestDatabase, databaseVariable } from '../support/test-store.ts'

let workMs = 0
const simulator = await startSimulator({ chatKey: 'pc', clock: () => workMs })
const place = await createTestDatabase()
const folder = mkdtempSync(join(tmpdir(), 'tollgate-crash-'))
after(async () => {
  await simulator.close()
  await place.remove()
  rmSync(folder, { recursive: true, force: true })
})

const program = fileURLToPath(new URL('./doomed-gateway.ts', import.meta.url))

async function live(point: string) {
  const child = spawn(process.execPath, [program, point, '1'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...{ PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] },
      ...{ TOLLGATE_PORT: '0', TOLLGATE_DATA_DIR: folder, TOLLGATE_LOG_LEVEL: 'silent' },
      ...{ TOLLGATE_CHAT_URL: simulator.chatUrl, TOLLGATE_CHAT_KEY: 'pc' },
      ...databaseVariable(place),
    },
  })
  const ended = once(child, 'exit')
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const { port } = JSON.parse(line.toString()) as { port: number }
  const ask = async (
    path: string,
    key = readFileSync(join(folder, 'admin-key'), 'utf8').trim(),
    body?: object,
  ) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const reply = await fetch(`http://127.0.0.1:${port}${path}`, { headers, ...sent })
    return (await reply.json()) as Record<string, unknown>
  }
  const stop = async () => {
    child.kill('SIGTERM')
    await ended
  }
  return { ask, stop, ended }
}

const first = await live('never')
const made = await first.ask('/v1/keys', undefined, { name: 'capped', monthly_budget_usd: 1 })
const [keyId, key] = [String(made['id']), String(made['key'])]
await first.stop()

const RESPONSE = { model: 'gpt-6-luna', input: 'Write a word', max_output_tokens: 64, background: true }

async function killedAt(point: string) {
  const doomed = await live(point)
  await assert.rejects(doomed.ask('/v1/responses', key, RESPONSE))
  await doomed.ended
  const life = await live('never')
  const { data } = await life.ask(`/v1/keys/${keyId}/requests?limit=1`)
  const [call = {}] = data as Record<string, unknown>[]
  return { life, call, key: await life.ask(`/v1/keys/${keyId}`) }
}

test('a call killed between upstream’s answer and its deferral is interrupted and holds nothing', async () => {
  const { life, call, key: record } = await killedAt('first_byte')
  assert.equal(call['state'], 'interrupted')
  assert.ok(Number(call['lost_list_cost_usd']) > 0)
  assert.deepEqual([record['month_held_usd'], record['month_spend_usd']], [0, 0])
  await life.stop()
})

test('a call killed right after its deferral keeps its hold, and the next start settles it', async () => {
  const { life, call, key: record } = await killedAt('before_settle')
  assert.equal(call['state'], 'deferred')
  assert.ok(Number(record['month_held_usd']) > 0)
  workMs += 3_600_000
  await life.ask(`/v1/responses/${call['object_id']}`, key)
  const settled = await life.ask(`/gateway/v1/requests/${call['id']}`)
  assert.equal(settled['state'], 'settled')
  const { month_held_usd, month_spend_usd } = await life.ask(`/v1/keys/${keyId}`)
  assert.deepEqual([month_held_usd, month_spend_usd], [0, settled['cost_usd']])
  await life.stop()
})
