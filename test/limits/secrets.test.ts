import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { closedPort } from '../support/closed-port.ts'
import { runCommand } from '../support/command-thread.ts'
import { test } from '../support/suite.ts'
import { runTollgate, type ServingProcess, serveTollgate } from '../support/tollgate-process.ts'
import { columnsOf, filesOf, findLeaks, type Place } from './canaries.ts'
import { bodyOf } from './gated-bench.ts'
import { makeCalls } from './misplace-keys.ts'
import { Visitor } from './visitor.ts'

const provider = {
  messages: 'sk-ant-canary-Mm7Qw2Zx9Lp4Rt6Vb8Nc1',
  chat: 'sk-canary-Cc5Ty8Ui3Op6As9Df2Gh4Jk7',
}
const ADMIN_KEY = 'canary-Admin-Hh4Jk6Lz8Xc1Vb3Nm5Qw7Er9'
const PEPPER = 'canary-pepper-Pp2Oi4Uy6Tr8Ew1Qa3Sd5'

async function stopAndCollect(tollgate: ServingProcess): Promise<Place[]> {
  const running = filesOf(tollgate.dataDir)
  tollgate.signal('SIGTERM')
  const { code, stdout, stderr } = await tollgate.finished
  assert.equal(code, 0)
  return [
    ...running.map(({ where, bytes }) => ({ where: `${where}, while it ran`, bytes })),
    ...(await columnsOf(tollgate)),
    ...filesOf(tollgate.dataDir),
    { where: 'stdout', bytes: Buffer.from(stdout) },
    { where: 'stderr', bytes: Buffer.from(stderr) },
  ]
}

test('no key, admin key, provider key or pepper is in logs, database or responses, at debug level', async () => {
  const simulator = await startSimulator({ messagesKey: provider.messages })
  const tollgate = await serveTollgate({
    TOLLGATE_LOG_LEVEL: 'debug',
    TOLLGATE_MESSAGES_URL: simulator.messagesUrl,
    TOLLGATE_MESSAGES_KEY: provider.messages,
    TOLLGATE_CHAT_URL: `http://127.0.0.1:${await closedPort()}/v1`,
    TOLLGATE_CHAT_KEY: provider.chat,
    TOLLGATE_ADMIN_KEY: ADMIN_KEY,
    TOLLGATE_PEPPER: PEPPER,
  })
  try {
    const visitor = new Visitor(tollgate)
    const manage = (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
      visitor.manage(ADMIN_KEY, method, path, body, headers)
    const first = await manage('POST', '/v1/keys', { name: 'first' }, { 'idempotency-key': 'once' })
    await manage('POST', '/v1/keys', { name: 'first' }, { 'idempotency-key': 'once' })
    const capped = await manage('POST', '/v1/keys', { name: 'capped', monthly_budget_usd: 0 })
    const [key, other] = [String(first['key']), String(capped['key'])]
    const rotated = await manage('POST', `/v1/keys/${first['id']}/rotate`, { old_expires_in_seconds: 3_600 })
    await makeCalls(visitor, key, other, ADMIN_KEY)
    await visitor.raw(
      'a spent cap',
      ['POST /v1/messages HTTP/1.1', 'Host: gateway', `x-api-key: ${other}`],
      bodyOf('messages'),
    )
    for (const path of ['', `/${first['id']}`, '/me', '/none', '?limit=no', '?search=first']) {
      await manage('GET', `/v1/keys${path}`)
      await visitor.manage(key, 'GET', `/v1/keys${path}`)
    }
    await manage('PATCH', `/v1/keys/${first['id']}`, { name: 'renamed' })
    await manage('PATCH', `/v1/keys/${first['id']}`, { monthly_budget_usd: -1 })
    await manage('DELETE', `/v1/keys/${rotated['id']}`)
    const picky = await manage('POST', '/v1/keys', { name: 'picky', allowed_models: ['gpt-6-luna'] })
    await visitor.raw(
      'a key as model that is not allowed',
      ['POST /v1/messages HTTP/1.1', 'Host: gateway', `x-api-key: ${picky['key']}`],
      bodyOf('messages').replace('claude-haiku-5-5', key),
    )
    await manage('POST', '/v1/keys', { name: 'odd', [key]: 1 })
    await manage('POST', '/v1/keys', { name: 'odd', monthly_budget_usd: key })
    await manage('GET', `/v1/keys?${key}=1`)
    await manage('GET', `/v1/keys?after=${key}`)
    await manage('GET', `/v1/keys?status=${key}`)
    await manage('GET', `/gateway/v1/requests/${key}`)
    await manage('GET', `/gateway/${key}`)
    await manage('POST', '/gateway/v1/credits', { amount_usd: 0, reason: 'nothing' })
    await manage('GET', '/gateway/v1/balance')
    await manage('GET', '/gateway/openapi.json')

    const canaries = [
      ...visitor.keys,
      { name: 'the admin key', value: ADMIN_KEY },
      { name: 'the pepper', value: PEPPER },
      { name: "Messages' provider key", value: provider.messages },
      { name: "Chat's provider key", value: provider.chat },
    ]
    assert.equal(visitor.keys.length, 5)
    const places = [...(await stopAndCollect(tollgate)), ...visitor.answers]
    const journal = tollgate.databaseUrl === null ? 'tollgate.db-wal' : 'node'
    assert.ok(places.some(({ where }) => where === `${journal}, while it ran`))
    assert.deepEqual(findLeaks(canaries, places), [])
    assert.deepEqual(findLeaks(canaries.slice(visitor.keys.length), visitor.passedOn), [])
    // The search finds a value that exists.
    const shown = findLeaks([{ name: 'a model', value: 'claude-haiku-5-5' }], places)
    assert.ok(shown.some((leak) => leak.startsWith('a model in column call.model_asked')))
  } finally {
    await tollgate.dispose()
    await simulator.close()
  }
})

test('a generated admin key and pepper are only in their files and in no output', async () => {
  await using tollgate = await serveTollgate({ TOLLGATE_LOG_LEVEL: 'debug' })
  const [adminKey = '', pepper = ''] = ['admin-key', 'pepper'].map((name) =>
    readFileSync(join(tollgate.dataDir, name), 'utf8').trim(),
  )
  const environment = { ...tollgate.environment, TOLLGATE_LOG_LEVEL: 'debug' }
  const created = await runCommand(['admin-key', 'create', '--name', 'second'], environment)
  const second = created.stdout.trim()
  const listed = await runCommand(['admin-key', 'list'], environment)
  const visitor = new Visitor(tollgate)
  const { id, key } = await visitor.manage(second, 'POST', '/v1/keys', { name: 'x' })
  await visitor.manage(adminKey, 'POST', `/v1/keys/${id}/revoke`)
  const lines = ['GET /v1/models HTTP/1.1', 'Host: gateway', `x-api-key: ${key}`]
  assert.equal(await visitor.raw('a revoked key', lines), 401)
  const misplaced = [`GET /v1/${adminKey} HTTP/1.1`, 'Host: gateway', `User-Agent: ${second}`]
  assert.equal(await visitor.raw('admin keys in wrong places', [...misplaced, `x-api-key: ${key}`]), 401)

  const places = await stopAndCollect(tollgate)
  const printed = [created.stderr, listed.stdout, listed.stderr].join('\n')
  places.push({ where: 'what the commands print', bytes: Buffer.from(printed) })
  const canaries = [
    ...visitor.keys,
    { name: 'the first admin key', value: adminKey },
    { name: 'the second admin key', value: second },
    { name: 'the pepper', value: pepper },
  ]
  assert.ok(canaries.every(({ value }) => value.length > 30))
  assert.deepEqual(findLeaks(canaries, [...places, ...visitor.answers]), [])
})

test('the errors of an invalid configuration contain none of its secrets', async () => {
  const secrets = { admin: 'canary admin key with blanks 0123', key: 'canary provider key 4567' }
  const { code, stdout, stderr } = await runTollgate(['serve'], {
    TOLLGATE_ADMIN_KEY: secrets.admin,
    TOLLGATE_PEPPER: 'canary-short',
    TOLLGATE_MESSAGES_KEY: secrets.key,
    TOLLGATE_MESSAGES_URL: 'https://operator:canary-password@example.com',
    TOLLGATE_CHAT_KEYS: 'canary-in-an-unknown-variable',
  })
  assert.equal(code, 2)
  assert.match(stderr, /TOLLGATE_ADMIN_KEY.*\n.*\n?.*TOLLGATE_M/s)
  assert.doesNotMatch(stdout + stderr, /canary/)
})
