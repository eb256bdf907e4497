import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { settingsOf } from '../sign-in/played-people.ts'
import { runInThread } from '../support/command-thread.ts'
import { startGateway } from '../support/gateway.ts'
import { signInPerson } from '../support/sign-in-person.ts'
import { closeAfter, test } from '../support/suite.ts'
import { startCommand } from '../support/tollgate-process.ts'

const gateway = await startGateway({ settings: { signIn: settingsOf({ issuer: 'http://127.0.0.1:9' }) } })
const home = await mkdtemp(join(tmpdir(), 'tollgate-home-'))
closeAfter(gateway, { close: () => rm(home, { recursive: true }) })
const ada = await signInPerson(gateway, 'ada')
const file = join(home, '.config', 'tollgate', 'credentials.json')
const environment = { TOLLGATE_URL: gateway.url, HOME: home, XDG_CONFIG_HOME: '' }
const run = (...args: readonly string[]) => runInThread(args, environment)

type Stored = Record<string, { token: string; expires_at: number; email: string }>
const read = async () => JSON.parse(await readFile(file, 'utf8')) as Stored

const statusOf = async (token: string) =>
  (await fetch(`${gateway.url}/v1/keys/me`, { headers: { authorization: `Bearer ${token}` } })).status

test('a terminal signs in, prints tokens that are valid long enough, and signs out', async () => {
  const login = startCommand(['login'], environment)
  const pattern = /compare the code: (\w{4}-\w{4})\n/
  const [, userCode] = pattern.exec(await login.printedToStderr(pattern)) ?? []
  const approved = await fetch(`${gateway.url}/gateway/v1/device`, {
    method: 'POST',
    headers: ada.headers,
    body: JSON.stringify({ user_code: userCode, approve: true }),
  })
  assert.equal(approved.status, 200)
  const { code, stdout } = await login.finished
  assert.deepEqual([code, stdout], [0, `Signed in at ${gateway.url} as ada@example.com.\n`])
  assert.equal((await stat(file)).mode & 0o777, 0o600)
  const before = (await read())[gateway.url] ?? assert.fail()
  assert.equal((await run('token')).stdout, `${before.token}\n`)
  assert.equal(await statusOf(before.token), 200)

  // Four minutes are too few, so the token is refreshed.
  const short = { ...before, expires_at: Date.now() + 240_000 }
  await writeFile(file, JSON.stringify({ 'https://other.example': before, [gateway.url]: short }))
  const shown = JSON.parse((await run('token', '--json')).stdout) as { token: string; expires_at: string }
  assert.equal(shown.token, before.token)
  assert.ok(Date.parse(shown.expires_at) > Date.now() + 3_000_000)

  assert.equal((await run('logout')).stdout, `Signed out at ${gateway.url}.\n`)
  assert.deepEqual(Object.keys(await read()), ['https://other.example'])
  assert.equal(await statusOf(before.token), 401)
  assert.equal((await run('logout')).stdout, `Nobody is signed in at ${gateway.url}.\n`)
  const refused = await run('token')
  assert.deepEqual([refused.code, refused.stdout], [1, ''])
  assert.match(refused.stderr, /, but at https:\/\/other\.example: .* Run `tollgate login`\.\n$/)
})

test('a token that cannot be refreshed is forgotten', async () => {
  await writeFile(file, JSON.stringify({ [gateway.url]: { token: 'svc_live_x', expires_at: 0 } }))
  const { code, stderr } = await run('token')
  assert.equal(code, 1)
  assert.match(stderr, /no longer signed in/)
  assert.deepEqual(await read(), {})
})

test('a gateway without people, a missing gateway and a broken file are explained', async () => {
  await using plain = await startGateway()
  const table: readonly (readonly [url: string, message: RegExp])[] = [
    [plain.url, /People do not sign in at/],
    ['http://127.0.0.1:1', /cannot be reached|does not connect to the port/],
  ]
  for (const [url, message] of table) {
    const { code, stderr } = await run('login', '--url', url)
    assert.equal(code, 1)
    assert.match(stderr, message)
  }
  await writeFile(file, '[')
  assert.match((await run('token')).stderr, /credentials\.json cannot be read/)
})
