import assert from 'node:assert/strict'
import { onlyAccount } from '../../src/cli/find-by-name.ts'
import { runInThread } from '../support/command-thread.ts'
import { after, test } from '../support/suite.ts'
import { runTollgate, serveTollgate } from '../support/tollgate-process.ts'

const tollgate = await serveTollgate()
after(() => tollgate.dispose())
const { environment } = tollgate

test('admin keys are created, listed and revoked while a gateway runs, and take effect at once', async () => {
  const statusWith = async (key: string) => {
    const response = await fetch(`${tollgate.url}/v1/keys`, { headers: { authorization: `Bearer ${key}` } })
    await response.body?.cancel()
    return response.status
  }
  const given = await runInThread(['admin-key', 'create', '--name', 'of a script', '--json'], environment)
  const { object, key: asJson, id: jsonId } = JSON.parse(given.stdout)
  assert.deepEqual([object, await statusWith(asJson)], ['admin_key', 200])
  const ended = await runInThread(['admin-key', 'revoke', jsonId, '--json'], environment)
  assert.deepEqual([JSON.parse(ended.stdout).status, await statusWith(asJson)], ['revoked', 401])
  const created = await runTollgate(['admin-key', 'create', '--name', 'second operator'], environment)
  assert.equal(created.code, 0)
  assert.match(created.stdout, /^svc_admin_[0-9A-Za-z]{49}\n$/)
  const key = created.stdout.trim()
  assert.equal(await statusWith(key), 200)
  const listed = await runInThread(['admin-key', 'list'], environment)
  assert.ok(!listed.stdout.includes(key))
  const [, id = ''] = /^(adm_[0-9A-Z]{26}) {2}usable .* second operator$/m.exec(listed.stdout) ?? []
  const revoked = await runInThread(['admin-key', 'revoke', id], environment)
  assert.equal(revoked.stdout, `Revoked ${id} (second operator).\n`)
  assert.equal(await statusWith(key), 401)
  assert.match((await runInThread(['admin-key', 'list'], environment)).stdout, new RegExp(`${id} {2}revoked`))
})

test('the last operator key cannot be revoked, and an unknown key is named in the error', async () => {
  const { stdout } = await runInThread(['admin-key', 'list'], environment)
  const [, id = ''] = /^(adm_\w+) {2}usable/m.exec(stdout) ?? []
  const last = await runInThread(['admin-key', 'revoke', id], environment)
  assert.equal(last.code, 1)
  assert.match(last.stderr, /This is the last operator key\. Create another one first/)
  const unknown = await runInThread(['admin-key', 'revoke', 'adm_none'], environment)
  assert.equal(unknown.code, 1)
  assert.match(unknown.stderr, /There is no such admin key/)
  const wrong = await runInThread(['admin-key', 'create', '--name', '\x1b'], environment)
  assert.deepEqual([wrong.code, wrong.stdout], [2, ''])
})

test('a data directory without a database is reported, and the error mentions only existing options', async () => {
  const empty = { TOLLGATE_DATA_DIR: '/nonexistent/data' }
  const { code, stdout, stderr } = await runInThread(['admin-key', 'list'], empty)
  assert.deepEqual([code, stdout], [2, ''])
  assert.match(stderr, /TOLLGATE_DATA_DIR: there is no Tollgate database in \/nonexistent\/data/)
  assert.doesNotMatch(stderr, /--url|TOLLGATE_URL/)
  const elsewhere = await runInThread(['admin-key', 'list'], {
    ...empty,
    TOLLGATE_URL: 'https://gateway.example',
  })
  assert.match(elsewhere.stderr, /does not use TOLLGATE_URL: run it on the host of the gateway/)
})

test('an admin key of an account is created by the name of the account', async () => {
  const create = (...account: readonly string[]) =>
    runInThread(['admin-key', 'create', '--role', 'viewer', '--account', ...account], environment)
  for (const account of ['default', 'Globex']) {
    await runInThread(['accounts', 'create', account], environment)
    assert.match((await create(account)).stdout, /^svc_admin_/)
  }
  assert.match((await create('Globe')).stderr, /There is no account "Globe"\. Did you mean:\n {2}acct_/)
  const found = () => onlyAccount('Globe', { data: [], has_more: true })
  assert.throws(found, { message: 'More than 1,000 accounts match "Globe". Use the id of the account.' })
})
