import assert from 'node:assert/strict'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import type { Store } from '../../src/store/store.ts'
import { addKey, closing, digestOf, opening } from '../store/conformance/fixtures.ts'
import { serveTollgate } from '../support/tollgate-process.ts'
import { until } from '../support/until.ts'

/** Data directories that a gateway has left behind. */
export interface Installations {
  /** A copy of the data directory, to be moved. */
  copy(): string
  remove(): void
}

/** Characters with a meaning on the way: to COPY, to PostgreSQL, and to the escapes by which PostgreSQL keeps them. */
const ODD = 'a\0b\u0001\u0002c\\N\td\re\nf\\.\u2028ß🙂'

/** Half of a character, which SQLite's driver makes a whole one, except in JSON. */
const HALF = `${ODD}\ud800`

/** The books of a gateway after a day with calls and commands of every kind, which ended with a power cut. */
export async function fillInstallation(): Promise<Installations> {
  const root = mkdtempSync(join(tmpdir(), 'tollgate-moved-'))
  const filled = join(root, 'filled')
  await runGateway(filled)
  await addOddities(filled)
  let copies = 0
  return {
    copy() {
      copies += 1
      const dataDir = join(root, `copy-${copies}`)
      cpSync(filled, dataDir, { recursive: true })
      return dataDir
    },
    remove: () => rmSync(root, { recursive: true, force: true }),
  }
}

async function runGateway(dataDir: string): Promise<void> {
  const simulator = await startSimulator()
  const tollgate = await serveTollgate({
    TOLLGATE_MESSAGES_URL: simulator.messagesUrl,
    TOLLGATE_CHAT_URL: simulator.chatUrl,
    // The books are in the data directory, whatever the store of this run is.
    TOLLGATE_DATABASE_URL: '',
  })
  const adminKey = readFileSync(join(tollgate.dataDir, 'admin-key'), 'utf8').trim()

  async function own(path: string, body: unknown, name?: string): Promise<Record<string, unknown>> {
    const response = await fetch(tollgate.url + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${adminKey}`,
        ...(name === undefined ? {} : { 'idempotency-key': name }),
      },
      body: JSON.stringify(body),
    })
    assert.ok(response.ok, `${path} is answered with ${response.status}`)
    return (await response.json()) as Record<string, unknown>
  }

  function send(key: string, path: string, body: unknown, behaviour = 'tokens=3'): Promise<Response> {
    return fetch(tollgate.url + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'anthropic-version': '2023-06-01',
        'content-type': 'application/json',
        'x-simulator': behaviour,
      },
      body: JSON.stringify(body),
    })
  }

  /** Makes a call; resolves with its request id. */
  async function call(...args: Parameters<typeof send>): Promise<string> {
    const response = await send(...args)
    await response.text().catch(() => {})
    return response.headers.get('x-svc-request-id') ?? ''
  }

  try {
    const make = async (name: string, more: Record<string, unknown> = {}) => {
      const made = await own('/v1/keys', { name, ...more }, `make ${encodeURI(name)}`)
      return { id: String(made['id']), key: String(made['key']) }
    }
    const plain = await make('Plain ß')
    const logged = await make('logged', { log_requests: true, monthly_budget_usd: 5 })
    const listed = await make('listed', { allowed_models: ['claude-haiku-5-5', 'gpt-6-luna', 'späte"\\'] })
    const old = await make('rotated')
    await own(`/v1/keys/${old.id}/rotate`, { old_expires_in_seconds: 0 }, 'rotate it')
    const gone = await make('gone')

    const message = { model: 'claude-haiku-5-5', max_tokens: 20, messages: [{ role: 'user', content: 'Hi' }] }
    const chat = { model: 'gpt-6-luna', messages: [{ role: 'user', content: 'Hi' }] }
    const first = await call(plain.key, '/v1/messages', message)
    await call(plain.key, '/v1/messages', { ...message, model: `unheard-of ${ODD}` })
    await call(plain.key, '/v1/messages', message, 'status=529')
    await call(gone.key, '/v1/messages', { ...message, stream: true }, 'cut=event:3')
    await own(`/v1/keys/${gone.id}/revoke`, {})
    await own('/gateway/v1/credits', { amount_usd: 12.000000001, reason: 'a top-up – 12 €' }, 'top up')
    await call(listed.key, '/v1/chat/completions', { ...chat, stream: true })
    await call(logged.key, '/v1/messages', message, 'no-usage')
    await call(logged.key, '/v1/chat/completions', chat, 'usage={"prompt_tokens":100000}')
    await own('/gateway/v1/credits', { request_ids: [first], reason: 'it was slow' }, 'give back')
    void send(plain.key, '/v1/messages', message, 'delay=600000').catch(() => {})

    await until('a call is in flight', async () =>
      hasRows(join(tollgate.dataDir, 'tollgate.db'), "SELECT 1 FROM call WHERE state = 'in_flight'", 1),
    )
    await until('bodies are kept', async () =>
      hasRows(join(tollgate.dataDir, 'bodies.db'), 'SELECT 1 FROM call_body', 2),
    )
    tollgate.signal('SIGKILL')
    await tollgate.finished
    cpSync(tollgate.dataDir, dataDir, { recursive: true })
  } finally {
    await tollgate.dispose()
    await simulator.close()
  }
}

function hasRows(file: string, sql: string, count: number): boolean {
  if (!existsSync(file)) return false
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    return db.prepare(sql).all().length === count
  } catch {
    // The file is there before its tables.
    return false
  } finally {
    db.close()
  }
}

/** Adds rows that no gateway writes by itself, and rows that take months to come about. */
async function addOddities(dataDir: string): Promise<void> {
  const file = join(dataDir, 'tollgate.db')
  const db = new DatabaseSync(file, { readOnly: true })
  const { price_version: priceVersion, rating } = db.prepare('SELECT * FROM call LIMIT 1').get() as {
    price_version: string
    rating: string
  }
  db.close()
  const store = await openSqliteStore(file, (error) => {
    throw error
  })
  try {
    await addKey(store, HALF, { id: 'key_odd', allowedModels: [ODD, 'x'], digest: digestOf('odd') })
    // The successor was made later and has an older id, as after a clock that stepped back.
    const successor = { id: 'key_before', digest: digestOf('before'), prefix: 'p', last4: 'l' }
    await store.rotateKey('default', 'key_odd', { ...successor, createdAtMs: 1, oldExpiresAtMs: 1 }, null)
    const models = [ODD, 'y']
    const bound = { kind: 'bound', listNanos: 2n, costNanos: 1n } as const
    await store.keepBatchFile({ accountId: 'default', keyId: 'key_odd', fileId: ODD, models, bound, atMs: 5 })
    await addReleased(store, priceVersion, rating)
    await store.keepRefused([
      {
        ...{ requestId: 'req_refused', digest: digestOf('odd'), startedAtMs: 3, endedAtMs: 4, method: 'GET' },
        ...{ path: ODD, surface: 'chat', modelAsked: HALF, status: 401, code: 'invalid_api_key' },
        ...{ clientIp: '::1', userAgent: ODD, socketId: ODD },
      },
    ])
    await store.keepBodies({
      requestId: 'req_released_3',
      atMs: 7,
      request: {
        compressed: Buffer.from([0, 1, 92, 255]),
        contentType: ODD,
        lengthBytes: 9,
        truncated: true,
      },
      response: null,
    })
  } finally {
    await store.close()
  }
}

async function addReleased(store: Store, priceVersion: string, rating: string): Promise<void> {
  const months = [Date.UTC(2025, 11, 31, 23, 59, 59, 999), Date.UTC(2026, 0, 1), Date.UTC(2026, 6, 2)]
  const odd = { path: `/${HALF}`, userAgent: HALF, modelAsked: HALF, priceVersion, rating }
  for (const [i, atMs] of [...months, ...months].entries()) {
    const requestId = `req_released_${i}`
    const models = { names: ['x'], unknown: null, batchFile: null }
    const hold = { kind: 'bound', nanos: 5n, listNanos: 5n } as const
    const { kind } = await store.admit(opening(requestId, 'before', { ...odd, atMs, models, hold }))
    assert.equal(kind, 'admitted')
    const nothing = { usage: null, costNanos: 0n, listNanos: 0n, modelServed: null, upstreamRequestId: ODD }
    const tokens = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
    await store.settle(closing(requestId, { ...nothing, tokens, atMs: atMs + 1, state: 'released' }))
  }
}
