import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DASHBOARD_URL, PersonBrowser } from '../sign-in/person-browser.ts'
import { decide, TestDevice } from '../sign-in/played-people.ts'
import { PlayedProvider } from '../sign-in/played-provider.ts'
import { stopPostgres } from '../support/postgres.ts'
import { after, before, test } from '../support/suite.ts'
import { Cluster } from './cluster.ts'
import { closeConnections, sendCall } from './send-call.ts'

/** A person, the devices of the person and a budget, on two nodes. */

let provider: PlayedProvider
let cluster: Cluster
const folder = mkdtempSync(join(tmpdir(), 'tollgate-people-'))

before(async () => {
  provider = await PlayedProvider.start()
  const file = join(folder, 'tollgate.json')
  const sign_in = {
    issuer: provider.issuer,
    client_id: 'tollgate',
    rules: [{ group: 'developers', role: 'member', account: 'default' }],
  }
  writeFileSync(file, JSON.stringify({ dashboard_url: DASHBOARD_URL, sign_in }))
  const environment = { TOLLGATE_CONFIG: file, TOLLGATE_OIDC_CLIENT_SECRET: 'of-the-client' }
  cluster = await Cluster.start([environment, environment])
})
after(async () => {
  await cluster.close()
  await provider.close()
  rmSync(folder, { recursive: true })
  await closeConnections()
  await stopPostgres()
})

/** A balancer that sends each request to the other node. */
function balancer() {
  let requests = 0
  return {
    get url() {
      return cluster.node(requests++).url
    },
  }
}

async function signIn(sub: string): Promise<{ browser: PersonBrowser; id: string }> {
  provider.part = { claims: { sub, email: `${sub}@example.com` } }
  const browser = new PersonBrowser(balancer())
  const back = await browser.open(provider.approve(await browser.begin()))
  assert.equal(back.status, 302, back.text)
  const session = (await browser.session()) ?? assert.fail()
  return { browser, id: (session['person'] as { id: string }).id }
}

async function signInDevice(browser: PersonBrowser): Promise<TestDevice> {
  const device = await TestDevice.begin(cluster.node(0))
  assert.equal((await decide(browser, device.userCode)).status, 200)
  assert.equal((await device.poll(cluster.node(1))).status, 200)
  return device
}

async function createKey(browser: PersonBrowser): Promise<string> {
  const { text } = await browser.open(
    '/v1/keys',
    'POST',
    { 'sec-fetch-site': 'same-origin' },
    { name: 'key' },
  )
  return String((JSON.parse(text) as { key: string }).key)
}

test('devices and keys of a person stop at the same cent on two nodes', async () => {
  const { browser, id } = await signIn('ada')
  const capUsd = 0.01
  await cluster.manage(0, 'PATCH', `/gateway/v1/people/${id}`, { monthly_budget_usd: capUsd })
  const keys = [
    (await signInDevice(browser)).token,
    (await signInDevice(browser)).token,
    await createKey(browser),
  ]
  const spend = (key: string, n: number) =>
    sendCall(cluster.node(n).url, { key, name: `person-${key.slice(-6)}-${n}`, tokens: 900 })
  const replies = await Promise.all(
    Array.from({ length: 60 }, (_, n) => keys.map((key) => spend(key, n))).flat(),
  )
  const costs = replies
    .filter(({ status }) => status === 200)
    .map((reply) => Number(reply.header('x-svc-cost-usd')))
  const spent = costs.reduce((sum, cost) => sum + cost, 0)
  assert.ok(spent >= capUsd && spent < capUsd + Math.max(...costs) + 1e-9, `${spent} of ${capUsd}`)
  for (const [n, key] of keys.entries())
    for (const node of [0, 1]) assert.equal((await spend(key, 60 + 2 * n + node)).status, 402)
})

test('who is blocked on one node is out on the other one at once', async () => {
  const { browser, id } = await signIn('bob')
  const [device, key] = [await signInDevice(browser), await createKey(browser)]
  const approved = await TestDevice.begin(cluster.node(0))
  assert.equal((await decide(browser, approved.userCode)).status, 200)
  const call = (token: string, node: number, name: string) =>
    sendCall(cluster.node(node).url, { key: token, name: `bob-${name}-${node}` })
  for (const token of [device.token, key]) assert.equal((await call(token, 1, token.slice(-4))).status, 200)
  let isBlocked = false
  /** Calls of both nodes go on while one of them blocks. The later ones began after the block had returned. */
  const hammer = async (token: string, node: number) => {
    for (let n = 0, beganLate = false; !beganLate; n += 1) {
      beganLate = isBlocked
      const { status } = await call(token, node, `${token.slice(-4)}-${n}`)
      if (beganLate) assert.equal(status, 401)
    }
  }
  const running = [device.token, key].flatMap((token) => [hammer(token, 0), hammer(token, 1)])
  await cluster.manage(0, 'POST', `/gateway/v1/people/${id}/block`)
  isBlocked = true
  await Promise.all(running)
  for (const node of cluster.nodes) {
    assert.equal((await device.refresh(node)).error, 'invalid_grant')
    assert.equal((await approved.poll(node)).error, 'expired_token')
  }
  assert.equal(await browser.session(), null)
  assert.equal((await decide(browser, 'BBBB-BBBB')).status, 401)
})

test('while the database does not answer, a device waits', async () => {
  const device = await TestDevice.begin(cluster.node(0))
  const { wire } = cluster.node(0)
  wire.mute()
  const { status, error } = await device.poll(cluster.node(0))
  assert.deepEqual([status, error], [400, 'authorization_pending'])
  wire.cut()
  wire.heal()
})
