import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { banner } from '../../src/cli/serve-output.ts'
import { readConfig } from '../../src/config/read-config.ts'
import { curlStandIn } from '../support/curl-stand-in.ts'
import { after, test } from '../support/suite.ts'
import { runTollgate, serveTollgate } from '../support/tollgate-process.ts'

const execute = promisify(execFile)
const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

async function createKey(url: string, adminKey: string): Promise<string> {
  const headers = { authorization: `Bearer ${adminKey}` }
  const response = await fetch(`${url}/v1/keys`, { method: 'POST', headers, body: '{"name":"first"}' })
  assert.equal(response.status, 201)
  return ((await response.json()) as { key: string }).key
}

const tollgate = await serveTollgate()
after(() => tollgate.dispose())

test('a first start creates an admin key, names its file, and shows a first call with either SDK', async () => {
  assert.match(tollgate.banner, /THE BUILT-IN SIMULATOR/)
  assert.ok(tollgate.banner.includes(`Dashboard  ${tollgate.url}/dashboard\n`))
  assert.doesNotMatch(tollgate.banner, /svc_admin_/)
  assert.match(tollgate.banner, /Admin key {2}in \S+\/admin-key/)
  assert.equal(modeOf(join(tollgate.dataDir, 'admin-key')), '600')
  assert.equal(modeOf(join(tollgate.dataDir, 'pepper')), '600')
  assert.equal(modeOf(tollgate.dataDir), '700')

  const apiKey = await tollgate.createKey()
  const message = await new Anthropic({ baseURL: tollgate.url, apiKey }).messages.create({
    model: 'claude-haiku-5-5',
    max_tokens: 16,
    messages: [{ role: 'user', content: 'Hello' }],
  })
  assert.equal(message.role, 'assistant')
  const completion = await new OpenAI({ baseURL: `${tollgate.url}/v1`, apiKey }).chat.completions.create({
    model: 'gpt-6-luna',
    max_completion_tokens: 16,
    messages: [{ role: 'user', content: 'Hello' }],
  })
  assert.equal(completion.object, 'chat.completion')
})

test('the commands that the banner prints work verbatim', async () => {
  const curl = curlStandIn()
  try {
    const commands = tollgate.banner.slice(
      tollgate.banner.indexOf('  export TOLLGATE_URL'),
      tollgate.banner.indexOf('Your SDK'),
    )
    const cwd = join(tollgate.dataDir, '..')
    const env = { ...process.env, PATH: `${curl.folder}:${process.env['PATH']}` }
    const { stdout: output } = await execute('sh', ['-c', commands], { cwd, env })
    assert.match(output, /^HTTP\/1\.1 200 OK\n/m)
    assert.match(output, /x-svc-request-id: req_/)
    assert.match(output, /x-svc-balance-usd: 19\.99/)
    assert.match(output, /"type":"message"/)
  } finally {
    curl.dispose()
  }
})

test('the banner and the README create the same key', () => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
  const [printed, written] = [tollgate.banner, readme].map((text) =>
    /keys create (--name [^)]*)/.exec(text)?.[1]?.replace(/ --admin-key-file.*/, ''),
  )
  assert.deepEqual(printed, written)
})

test('the first admin key is printed only on a terminal; elsewhere the banner names its file', () => {
  const config = readConfig({ TOLLGATE_DATA_DIR: './data' })
  const facts = {
    url: '',
    config,
    isSimulated: true,
    reasonNotSimulated: null,
    firstAdminKey: 'svc_admin_first',
    certificate: null,
  }
  assert.match(banner({ ...facts, isTerminal: true }), /Admin key {2}svc_admin_first\n.*data\/admin-key/)
  const piped = banner({ ...facts, isTerminal: false })
  assert.doesNotMatch(piped, /svc_admin_first/)
  assert.match(piped, /Admin key {2}in data\/admin-key/)
})

test('a second gateway on the same data directory exits with 1 and says why', async () => {
  const second = await runTollgate(['serve'], { TOLLGATE_PORT: '0', ...tollgate.environment })
  assert.equal(second.code, 1)
  assert.match(second.stderr, /Another Tollgate process already uses .*\. Stop it, or set TOLLGATE_DATA_DIR/)
})

test('a port in use is explained', async () => {
  const { port } = new URL(tollgate.url)
  const dataDir = `${tollgate.dataDir}-2`
  const end = await runTollgate(['serve'], { TOLLGATE_PORT: port, TOLLGATE_DATA_DIR: dataDir })
  assert.equal(end.code, 1)
  assert.match(end.stderr, new RegExp(`Port ${port} on 127\\.0\\.0\\.1 is already in use`))
})

test('a second start on the same data keeps the keys and does not print the admin key again', async () => {
  const apiKey = await tollgate.createKey()
  tollgate.signal('SIGTERM')
  assert.equal((await tollgate.finished).code, 0)
  await using second = await serveTollgate(tollgate.environment)
  assert.doesNotMatch(second.banner, /svc_admin_/)
  const headers = { authorization: `Bearer ${apiKey}` }
  const response = await fetch(`${second.url}/v1/models`, { headers })
  assert.equal(response.status, 200)
  await response.body?.cancel()
})

test('a start recovers from an empty pepper file by writing a new pepper', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-pepper-'))
  writeFileSync(join(dataDir, 'pepper'), '', { mode: 0o600 })
  const started = await serveTollgate({ TOLLGATE_DATA_DIR: dataDir })
  try {
    assert.match(readFileSync(join(dataDir, 'pepper'), 'utf8'), /^[\w-]{43}\n$/)
  } finally {
    await started.dispose()
    rmSync(dataDir, { recursive: true, force: true })
  }
})

async function assertRefused(url: string, adminKey: string): Promise<void> {
  const headers = { authorization: `Bearer ${adminKey}` }
  const response = await fetch(`${url}/v1/keys`, { method: 'POST', headers, body: '{"name":"x"}' })
  assert.equal(response.status, 401)
  await response.body?.cancel()
}

test('an unconfigured surface answers 503, and a changed or removed TOLLGATE_ADMIN_KEY stops working', async () => {
  const [former, latter] = ['the-former-admin-key-of-the-operator', 'the-latter-admin-key-of-the-operator']
  const upstream = { TOLLGATE_MESSAGES_URL: 'http://127.0.0.1:9/' }
  await using first = await serveTollgate({ ...upstream, TOLLGATE_ADMIN_KEY: former })
  assert.match(first.banner, /Chat +not configured/)
  assert.doesNotMatch(first.banner, /SIMULATOR|the-former-admin-key/)
  const apiKey = await createKey(first.url, former)
  const headers = { authorization: `Bearer ${apiKey}` }
  const response = await fetch(`${first.url}/v1/chat/completions`, { method: 'POST', headers, body: '{}' })
  assert.equal(response.status, 503)
  assert.equal(response.headers.get('x-should-retry'), 'false')
  const { error } = (await response.json()) as { error: { code: string; message: string } }
  assert.equal(error.code, 'surface_not_configured')
  assert.match(error.message, /^No upstream is configured for this API\. Ask .* TOLLGATE_CHAT_KEY/)
  first.signal('SIGTERM')
  await first.finished

  await using second = await serveTollgate({ TOLLGATE_ADMIN_KEY: latter, ...first.environment })
  await createKey(second.url, latter)
  await assertRefused(second.url, former)
  second.signal('SIGTERM')
  await second.finished

  // No admin key is left, so this start creates one.
  await using third = await serveTollgate(first.environment)
  assert.match(await third.createKey(), /^svc_live_/)
  await assertRefused(third.url, latter)
})
