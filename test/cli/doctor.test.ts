import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { type Environment, readConfig } from '../../src/config/read-config.ts'
import type { Finding } from '../../src/doctor/check.ts'
import { judgeSpace } from '../../src/doctor/local-checks.ts'
import { probeUpstreams } from '../../src/doctor/upstream-checks.ts'
import { runCommand } from '../support/command-thread.ts'
import { startGateway } from '../support/gateway.ts'
import { after, test } from '../support/suite.ts'
import { runTollgate, serveTollgate } from '../support/tollgate-process.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-doctor-'))
const opened: Simulator[] = []
after(async () => {
  for (const simulator of opened) await simulator.close()
  rmSync(folder, { recursive: true })
})

async function doctor(environment: Environment, ...args: string[]) {
  const run = await runCommand(['doctor', '--json', ...args], environment, folder)
  const { ok, checks } = JSON.parse(run.stdout) as { ok: boolean; checks: Finding[] }
  assert.equal(run.code, ok ? 0 : 1, run.stdout)
  return { checks, of: (name: string) => checks.find((check) => check.name === name) }
}

test('the eight checks pass on a gateway in use', async () => {
  await using gateway = await startGateway({ messagesUrl: 'http://127.0.0.1:9' })
  const simulator = await startSimulator({ messagesKey: 'the-messages-key', chatKey: 'the-chat-key' })
  opened.push(simulator)
  const { checks } = await doctor({
    TOLLGATE_DATA_DIR: gateway.dataDir,
    ...(gateway.databaseUrl === null ? {} : { TOLLGATE_DATABASE_URL: gateway.databaseUrl }),
    TOLLGATE_MESSAGES_URL: simulator.messagesUrl,
    TOLLGATE_MESSAGES_KEY: 'the-messages-key',
    TOLLGATE_CHAT_URL: simulator.chatUrl,
    TOLLGATE_CHAT_KEY: 'the-chat-key',
  })
  assert.deepEqual(
    checks.map(({ name, state }) => `${name} ${state}`),
    [
      ...['configuration ok', 'data_directory ok', 'pepper ok', 'store ok', 'disk_space ok'],
      ...['certificate skipped', 'upstream_keys ok', 'upstream_keys ok', 'prices ok'],
    ],
  )
})

test('a lost or wrong pepper is a problem, and the gateway does not start with it', async () => {
  await using gateway = await startGateway({ messagesUrl: 'http://127.0.0.1:9' })
  const store = gateway.databaseUrl === null ? {} : { TOLLGATE_DATABASE_URL: gateway.databaseUrl }
  const right = { TOLLGATE_DATA_DIR: gateway.dataDir, ...store }
  const wrong = { ...right, TOLLGATE_PEPPER: 'another-pepper-of-32-characters!' }
  const { of } = await doctor(right)
  assert.deepEqual([of('pepper')?.state, of('upstream_keys')?.state], ['ok', 'skipped'])
  assert.equal((await doctor(wrong)).of('pepper')?.state, 'problem')
  const serve = await runTollgate(['serve'], { ...wrong, TOLLGATE_PORT: '0' }, folder)
  assert.equal(serve.code, 1)
  assert.match(
    serve.stderr,
    /TOLLGATE_PEPPER is not the pepper that the keys in the database were created with/,
  )
  rmSync(join(gateway.dataDir, 'pepper'))
  assert.match((await doctor(right)).of('pepper')?.found ?? '', /pepper is missing/)
})

test('a file that is not a database, or one of a newer version, is a problem of the store', async () => {
  const dataDir = join(folder, 'broken')
  mkdirSync(dataDir, { mode: 0o700 })
  const file = join(dataDir, 'tollgate.db')
  writeFileSync(
    file,
    'not a database, but a text that is long enough to be read as the header of one'.repeat(20),
  )
  const broken = await doctor({ TOLLGATE_DATA_DIR: dataDir })
  assert.deepEqual([broken.of('store')?.state, broken.of('pepper')?.state], ['problem', 'skipped'])
  rmSync(file)
  const db = new DatabaseSync(file)
  db.exec(
    'CREATE TABLE schema_version (version, oldest_version); INSERT INTO schema_version VALUES (1000, 1000)',
  )
  db.close()
  assert.match((await doctor({ TOLLGATE_DATA_DIR: dataDir })).of('store')?.found ?? '', /newer release/)
  const nowhere = { TOLLGATE_DATA_DIR: dataDir, TOLLGATE_DATABASE_URL: 'postgres://127.0.0.1:1/none' }
  const found = await doctor(nowhere)
  assert.equal(found.of('store')?.state, 'problem')
  const serve = await runTollgate(['serve'], { ...nowhere, TOLLGATE_PORT: '0' }, folder)
  assert.equal(serve.code, 1)
  assert.match(serve.stderr, /postgres:\/\/127\.0\.0\.1:1\/none cannot be used/)
})

test('little disk space is a warning, almost none a problem', () => {
  assert.deepEqual(
    [19e6, 20e6, 999e6, 1000e6].map((bytes) => judgeSpace(bytes).state),
    ['problem', 'warning', 'warning', 'ok'],
  )
})

test('an upstream key that is refused is a problem for doctor and a warning for serve', async () => {
  const simulator = await startSimulator({ chatKey: 'the-chat-key' })
  opened.push(simulator)
  const environment = { TOLLGATE_CHAT_URL: simulator.chatUrl, TOLLGATE_CHAT_KEY: 'a-wrong-chat-key' }
  const { state, found } = (await doctor(environment)).of('upstream_keys') ?? {}
  assert.equal(state, 'problem')
  assert.match(found ?? '', /refuses the key \(401\)/)
  assert.equal((await doctor(environment, '--offline')).of('upstream_keys'), undefined)
  await using serving = await serveTollgate(environment)
  await serving.printedToStderr(/"check":"upstream_keys".*refuses the key \(401\)/)
  assert.equal((await fetch(`${serving.url}/healthz`)).status, 200)
})

test('an upstream that answers 401 or 403 is a problem, any other status but 200 a warning', async () => {
  let status = 200
  const upstream = createServer((_request, response) => response.writeHead(status).end())
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
  const { port } = upstream.address() as AddressInfo
  const url = { TOLLGATE_CHAT_URL: `http://127.0.0.1:${port}/v1`, TOLLGATE_CHAT_KEY: 'k' }
  const config = readConfig(url, folder)
  const states: unknown[] = []
  for (status of [200, 401, 403, 404, 503]) {
    states.push(...(await probeUpstreams(config)).map(({ result }) => result.state))
  }
  upstream.close()
  assert.deepEqual(states, ['ok', 'problem', 'problem', 'warning', 'warning'])
})

test("doctor checks the accounts' own upstream keys, and names the account but not the key", async () => {
  const simulator = await startSimulator({ messagesKey: 'installation-key', chatKey: 'the-chat-key' })
  opened.push(simulator)
  const { messagesUrl, chatUrl: url } = simulator
  await using gateway = await startGateway({ messagesUrl, messagesKey: 'installation-key' })
  const create = async (name: string, upstreams: object) =>
    (await gateway.manage('POST', '/gateway/v1/accounts', { name, upstreams }))['id']
  const right = await create('right', { chat: { url, key: 'the-chat-key' } })
  const wrong = await create('wrong', {
    chat: { url, key: 'a-wrong-chat-key' },
    messages: { url: messagesUrl },
  })
  const environment = {
    TOLLGATE_DATA_DIR: gateway.dataDir,
    ...(gateway.databaseUrl === null ? {} : { TOLLGATE_DATABASE_URL: gateway.databaseUrl }),
    TOLLGATE_MESSAGES_URL: messagesUrl,
    TOLLGATE_MESSAGES_KEY: 'installation-key',
  }
  const [{ checks }, { host }] = [await doctor(environment), new URL(url)]
  assert.deepEqual(
    checks.filter(({ name }) => name === 'upstream_keys').map(({ state, found }) => `${state} ${found}`),
    [
      `ok ${new URL(messagesUrl).host} accepts the key`,
      `ok ${right} (right): ${host} accepts the key`,
      `problem ${wrong} (wrong): ${new URL(messagesUrl).host} requires a key (401), but none is set`,
      `problem ${wrong} (wrong): ${host} refuses the key (401)`,
    ],
  )
  assert.doesNotMatch(JSON.stringify(checks), /wrong-chat-key|the-chat-key/)
  const alone = { ...environment, TOLLGATE_MESSAGES_URL: '', TOLLGATE_MESSAGES_KEY: '' }
  const others = await doctor({ ...alone, TOLLGATE_PEPPER: 'another-pepper-of-32-characters!' })
  assert.match(
    JSON.stringify(others.checks),
    /^(?!.*no upstream).*is off: an account.*key for chat cannot be decrypted/,
  )
})

test('models of the last week without a price are listed, whether their calls passed or were refused', async () => {
  const simulator = await startSimulator({})
  opened.push(simulator)
  await using gateway = await startGateway({ chatUrl: simulator.chatUrl })
  const { key: capped } = await gateway.createKey('capped', { monthly_budget_usd: 5 })
  const call = async (key: string, model: string) => {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
    })
    await response.text()
    return response.status
  }
  assert.equal(await call(gateway.apiKey, 'gpt-6-cyber'), 200)
  assert.equal(await call(capped, 'gpt-7-sol'), 400)
  // The answer includes all refusals so far, so they are in the database.
  await gateway.manage('GET', '/gateway/v1/prices/missing')
  // A call without a model needs no price.
  await (await fetch(`${gateway.url}/v1/models`, { headers: { 'x-api-key': gateway.apiKey } })).text()
  const store = gateway.databaseUrl === null ? {} : { TOLLGATE_DATABASE_URL: gateway.databaseUrl }
  const { of } = await doctor({ TOLLGATE_DATA_DIR: gateway.dataDir, ...store })
  assert.equal(of('prices')?.state, 'warning')
  assert.match(of('prices')?.found ?? '', /without a price: gpt-6-cyber, gpt-7-sol$/)
})
