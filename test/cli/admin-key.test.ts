import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { runInThread } from '../support/command-thread.ts'
import { runTollgate, serveTollgate, startCommand } from '../support/tollgate-process.ts'

const tollgate = await serveTollgate()
after(() => tollgate.dispose())
const { environment } = tollgate

test('the last admin key cannot be revoked, an unknown one is named, a wrong call shows how', async () => {
  const listed = await runInThread(['admin-key', 'list'], environment)
  const id = /^adm_\w+/m.exec(listed.stdout)?.[0] ?? ''
  const last = await runInThread(['admin-key', 'revoke', id], environment)
  assert.equal(last.code, 1)
  assert.match(last.stderr, /is the last admin key/)
  const unknown = await runInThread(['admin-key', 'revoke', 'adm_none'], environment)
  assert.equal(unknown.code, 1)
  assert.match(unknown.stderr, /there is no admin key adm_none/)
  for (const args of [['revoke'], ['destroy'], ['create', '--nmae', 'x'], ['create', '--name', '\x1b']]) {
    const wrong = await runInThread(['admin-key', ...args], environment)
    assert.equal(wrong.code, 2, args.join(' '))
    assert.match(wrong.stderr, /Usage\n/)
  }
})

test('admin keys are a table with colour on a terminal, plain in a pipe, and each action explains itself', async () => {
  const plain = await runInThread(['admin-key', 'list'], environment)
  assert.match(plain.stdout, /^id +status {2}key +created \(UTC\) +name\nadm_\w{26} {2}usable {2}svc_admin_/)
  const terminal = { columns: 100 }
  const coloured = await startCommand(['admin-key', 'list'], environment, { terminal }).finished
  assert.match(coloured.stdout, /\x1b\[32musable\x1b\[39m/)
  assert.equal(coloured.stdout.replaceAll(/\x1b\[\d+m/g, ''), plain.stdout)
  for (const action of ['create', 'list', 'revoke']) {
    const help = await runInThread(['admin-key', action, '--help'], environment)
    assert.equal(help.code, 0)
    assert.ok(help.stdout.startsWith(`Usage\n  tollgate admin-key ${action}`))
    assert.match(help.stdout, /\nExample\n[\s\S]*\nExit codes\n/)
  }
  assert.equal((await runInThread(['admin-key', 'list'], environment)).stdout, plain.stdout)
})

test('admin keys are created, listed and revoked beside a running gateway, and take effect at once', async () => {
  const statusWith = async (key: string) => {
    const headers = { authorization: `Bearer ${key}` }
    const response = await fetch(`${tollgate.url}/v1/keys`, { method: 'POST', headers, body: '{"name":"x"}' })
    await response.body?.cancel()
    return response.status
  }
  const created = await runTollgate(['admin-key', 'create', '--name', 'second operator'], environment)
  assert.equal(created.code, 0)
  assert.match(created.stdout, /^svc_admin_[0-9A-Za-z]{49}\n$/)
  const key = created.stdout.trim()
  assert.equal(await statusWith(key), 201)

  const listed = await runTollgate(['admin-key', 'list'], environment)
  assert.ok(!listed.stdout.includes(key))
  const line = listed.stdout.split('\n').find((text) => text.includes('second operator')) ?? ''
  assert.match(line, /^adm_[0-9A-Z]{26} {2}usable /)

  const id = line.split(' ')[0] ?? ''
  const revoked = await runTollgate(['admin-key', 'revoke', id], environment)
  assert.equal(revoked.code, 0)
  assert.equal(await statusWith(key), 401)
  assert.match((await runTollgate(['admin-key', 'list'], environment)).stdout, new RegExp(`${id} {2}revoked`))
})
