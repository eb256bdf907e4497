import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { Secret } from '../../src/kernel/secret.ts'
import { DASHBOARD_URL, PersonBrowser } from '../sign-in/person-browser.ts'
import { settingsOf } from '../sign-in/played-people.ts'
import { root } from '../style/source-tree.ts'
import { closedPort } from '../support/closed-port.ts'
import { curlStandIn } from '../support/curl-stand-in.ts'
import { withDeadline } from '../support/deadline.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { after, before, test } from '../support/suite.ts'
import { cleanEnvironment } from '../support/tollgate-process.ts'
import { until } from '../support/until.ts'

/** The programs of examples/, as an operator runs them. */

const execute = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'tollgate-examples-'))
const curl = curlStandIn()
let simulator: Simulator
let gateway: TestGateway
let env: NodeJS.ProcessEnv

before(async () => {
  simulator = await startSimulator({ chatKey: 'c' })
  const upstream = { chatUrl: simulator.chatUrl, chatKey: 'c' }
  gateway = await startGateway({ ...upstream, settings: { webhooksAllowPrivate: true } })
  env = cleanEnvironment({
    TOLLGATE_URL: gateway.url,
    TOLLGATE_ADMIN_KEY: gateway.adminKey,
    PATH: `${curl.folder}:${process.env['PATH']}`,
  })
})
after(async () => {
  await gateway.close()
  await simulator.close()
  curl.dispose()
  rmSync(folder, { recursive: true })
})

const PROGRAMS: Readonly<Record<string, string>> = { mjs: process.execPath, py: 'python3', sh: 'sh' }
const programOf = (file: string) => PROGRAMS[file.split('.')[1] ?? ''] ?? assert.fail(file)

async function run(file: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await execute(programOf(file), [join(root, 'examples', file), ...args], {
    cwd: folder,
    env,
  })
  return stdout
}

test('README.md of the examples names each of them', () => {
  const text = readFileSync(join(root, 'examples/README.md'), 'utf8')
  const files = globSync('examples/*.{mjs,py,sh}', { cwd: root }).map((path) => basename(path))
  assert.equal(files.length, 6)
  for (const file of files) assert.ok(text.includes(`(${file})`), file)
})

test('keys-from-csv.mjs creates each key once; cost-by-team.py adds up their costs; export-calls.sh saves the calls', async () => {
  writeFileSync(
    join(folder, 'keys.csv'),
    'name,team,monthly_budget_usd\ncheckout,web,50\nsearch,web,20\nnightly,data,5\n',
  )
  const created = (await run('keys-from-csv.mjs', 'keys.csv')).trim().split('\n')
  const secrets = created.map((line) => line.split(',')[1] ?? '')
  for (const secret of secrets) assert.match(secret, /^svc_live_/)
  assert.match(await run('keys-from-csv.mjs', 'keys.csv'), /^checkout,created before as key_/)
  for (const secret of secrets.slice(1))
    await (
      await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'gpt-6-luna', messages: [{ role: 'user', content: 'Hello' }] }),
      })
    ).text()
  const today = new Date(Date.now()).toISOString().slice(0, 10)
  const lines = (await run('cost-by-team.py', today.slice(0, 7))).trim().split('\n')
  assert.equal(lines.shift(), 'team,cost_usd')
  assert.deepEqual(lines.map((line) => line.replace(/,0\.\d+$/, '')).sort(), ['data', 'web'])

  await run('export-calls.sh', today, today)
  const [file = ''] = readdirSync(folder).filter((name) => name.endsWith('.gz'))
  const csv = gunzipSync(readFileSync(join(folder, file))).toString()
  assert.equal(csv.trim().split('\n').length, 3)
})

test('rotate-old-keys.mjs rotates the keys of the given age once', async () => {
  const { id } = (await gateway.manage('POST', '/v1/keys', { name: 'old' })) as { id: string }
  assert.equal(await run('rotate-old-keys.mjs', '1'), '')
  assert.match(await run('rotate-old-keys.mjs', '0'), /^old,svc_live_/m)
  const { expires_at: end } = (await gateway.manage('GET', `/v1/keys/${id}`)) as { expires_at: string | null }
  assert.ok(end !== null)
})

test('receive-webhooks.py prints a genuine message once, and refuses a forged one', async () => {
  const port = String(await closedPort())
  const url = `http://127.0.0.1:${port}`
  const made = await gateway.manage('POST', '/gateway/v1/webhooks', { url, events: ['key.created'] })
  const child = spawn('python3', [join(root, 'examples/receive-webhooks.py')], {
    env: { ...env, PORT: port, WEBHOOK_SECRET: String(made['secret']) },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const isUp = () =>
      fetch(url).then(
        () => true,
        () => false,
      )
    await until('the receiver listens', isUp)
    const printed = once(child.stdout, 'data')
    await gateway.manage('POST', '/v1/keys', { name: 'watched' })
    const [text] = await withDeadline(printed, () => 'the receiver printed nothing')
    assert.equal(String(text), 'key.created watched\n')
    const forged = await fetch(url, {
      method: 'POST',
      headers: { 'webhook-id': 'evt_1', 'webhook-timestamp': '1', 'webhook-signature': 'v1,x' },
      body: '{}',
    })
    assert.equal(forged.status, 400)
  } finally {
    child.kill('SIGKILL')
  }
})

/** Signs in at the pages of the provider, as a browser does. Returns the address that leads back to the gateway. */
async function typeName(name: string, authorizationUrl: string, issuer: string): Promise<string> {
  const cookies = new Map<string, string>()
  let address = authorizationUrl
  let typed: URLSearchParams | undefined
  while (address.startsWith(issuer)) {
    const cookie = [...cookies].map((pair) => pair.join('=')).join('; ')
    const method = typed === undefined ? 'GET' : 'POST'
    const body = typed === undefined ? {} : { body: typed }
    const response = await fetch(address, { method, redirect: 'manual', headers: { cookie }, ...body })
    for (const line of response.headers.getSetCookie()) {
      const [, key = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(key, value)
    }
    const next = response.headers.get('location')
    const [, prompt] = /name="prompt" value="(\w+)"/.exec(await response.text()) ?? []
    if (next === null && prompt === undefined) throw new Error(`${address}: ${response.status}`)
    typed =
      next === null ? new URLSearchParams({ prompt: prompt ?? '', login: name, password: 'x' }) : undefined
    if (next !== null) address = new URL(next, address).href
  }
  return address
}

test('with local-identity-provider.mjs, people sign in, and the named ones are operators', async () => {
  const issuer = `http://localhost:${await closedPort()}`
  const child = spawn(process.execPath, [join(root, 'examples/local-identity-provider.mjs'), 'grace'], {
    env: { ...env, ISSUER: issuer, DASHBOARD_URL },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const clientSecret = new Secret('trial-secret-of-this-machine')
  const signIn = { ...settingsOf({ issuer }), clientSecret }
  await using people = await startGateway({ settings: { signIn } })
  try {
    await withDeadline(once(child.stdout, 'data'), () => 'the provider did not start')
    for (const [name, role] of [
      ['grace', 'operator'],
      ['ada', 'member'],
    ] as const) {
      const browser = new PersonBrowser(people)
      const callback = await typeName(name, await browser.begin(), issuer)
      assert.equal((await browser.open(callback)).status, 302)
      assert.equal((await browser.session())?.['role'], role)
    }
  } finally {
    child.kill('SIGKILL')
  }
})
