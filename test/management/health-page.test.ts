import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { changeBooks } from '../support/books.ts'
import { startGateway } from '../support/gateway.ts'
import { testStore } from '../support/test-store.ts'
import { until } from '../support/until.ts'
import { askOf } from './own-client.ts'

const SECRETS = ['sk-upstream-secret-1234', 'pepper-pepper-pepper', 'an-admin-key-of-at-least-32-characters']
const [providerKey = '', pepper = '', adminKey = ''] = SECRETS
const gateway = await startGateway({
  chatUrl: 'http://127.0.0.1:9/v1',
  chatKey: providerKey,
  env: { TOLLGATE_PEPPER: pepper, TOLLGATE_ADMIN_KEY: adminKey },
})
after(() => gateway.close())
const ask = askOf(gateway)

test('the node, the store and the configuration are told, and no secret', async () => {
  const { status, body } = await ask('GET', '/gateway/v1/health')
  assert.equal(status, 200)
  assert.equal(body['status'], 'ok')
  assert.equal(body['node_version'], process.versions.node)
  const store = body['store'] as Record<string, unknown>
  assert.equal(store['kind'], testStore)
  assert.equal(store['writable'], true)
  assert.ok(Number(store['size_bytes']) > 10_000)
  const settings = new Map(
    (body['configuration'] as { name: string; value: unknown }[]).map((s) => [s.name, s.value]),
  )
  assert.equal(settings.get('TOLLGATE_CHAT_URL'), 'http://127.0.0.1:9/v1')
  assert.equal(settings.get('TOLLGATE_CHAT_KEY'), 'set')
  assert.equal(settings.get('TOLLGATE_MESSAGES_KEY'), null)
  assert.equal(settings.get('budgets.wait_seconds'), 30)
  const text = JSON.stringify(body)
  for (const secret of SECRETS) assert.ok(!text.includes(secret))
})

test('with PostgreSQL the nodes that share the database are told', async () => {
  // A node registers with its first admission.
  await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${gateway.apiKey}` } })
  const { nodes, node } = (await ask('GET', '/gateway/v1/health')).body as {
    nodes: { name: string; state: string }[] | null
    node: string
  }
  if (testStore === 'sqlite') assert.equal(nodes, null)
  else
    assert.deepEqual(
      nodes?.map(({ name, state }) => [name, state]),
      [[node, 'serving']],
    )
})

async function ended(): Promise<Record<string, unknown>> {
  let audit: Record<string, unknown> = {}
  await until('the audit has ended', async () => {
    audit = (await ask('GET', '/gateway/v1/audit')).body
    return audit['state'] !== 'running'
  })
  return audit
}

test('an audit runs in the background, one at a time, and tells what came of it', async () => {
  assert.equal((await ask('GET', '/gateway/v1/audit')).body['state'], 'never')
  const begun = await ask('POST', '/gateway/v1/audit')
  assert.equal(begun.status, 202)
  assert.equal(begun.body['state'], 'running')
  assert.equal((await ask('POST', '/gateway/v1/audit')).status, 409)
  const audit = await ended()
  assert.deepEqual([audit['state'], audit['balanced'], audit['difference']], ['done', true, null])
  assert.equal((audit['counts'] as { keys: number }).keys, 1)
  assert.deepEqual((await ask('GET', '/gateway/v1/health')).body['audit'], audit)
})

test('an audit names the first difference that it finds', async () => {
  await changeBooks(gateway, 'UPDATE account SET charged_nanos = charged_nanos + 1')
  assert.equal((await ask('POST', '/gateway/v1/audit')).status, 202)
  const audit = await ended()
  assert.equal(audit['balanced'], false)
  assert.deepEqual((audit['difference'] as { what: string }).what, 'charged of an account')
})
