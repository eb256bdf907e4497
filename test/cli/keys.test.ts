import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { closedPort } from '../support/closed-port.ts'
import { assertAllWrong, type CommandBench, startCommandBench, WAYS } from './command-bench.ts'

let bench: CommandBench
before(async () => {
  bench = await startCommandBench()
})
after(() => bench.close())

const UNKNOWN = 'key_01JCN1ZV5M3T9Q8W7E6R5T4Y3X'

/** The status of a call with the key: 200, 401, 402. */
async function statusWith(key: string): Promise<number> {
  const response = await fetch(`${bench.gateway.tollgate.url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': key, 'anthropic-version': '2023-06-01', 'content-type': 'application/json' },
    body: '{"model":"claude-haiku-5-5","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}',
  })
  await response.arrayBuffer()
  return response.status
}

async function idOf(name: string): Promise<string> {
  const list = JSON.parse(await bench.api(`/v1/keys?search=${encodeURIComponent(name)}`))
  return list.data[0].id
}

for (const way of WAYS) {
  test(`a key is created, shown, changed, rotated and revoked ${way}`, async () => {
    const name = `life ${way}`
    const limits = ['--monthly-budget', '50.000000001', '--allow-model', 'claude-haiku-5-5', '--log-requests']
    const created = await bench.start(way, ['keys', 'create', '--name', name, ...limits]).finished
    assert.equal(created.code, 0, created.stderr)
    assert.match(created.stdout, /^svc_live_[0-9A-Za-z]{49}\n$/)
    const id = await idOf(name)
    assert.equal(created.stderr, `Created ${id} (${name}). The key is shown this once:\n`)
    const key = created.stdout.trim()
    assert.equal(await statusWith(key), 200)

    const shown = await bench.run(way, ['keys', 'show', id])
    assert.equal(shown.code, 0)
    assert.ok(!shown.stdout.includes(key))
    assert.ok(shown.stdout.startsWith(`${id}  ${name}\n  status        usable\n`), shown.stdout)
    assert.match(shown.stdout, /\n {2}monthly cap {3}50\.000000001 USD\n/)
    assert.match(
      shown.stdout,
      /\n {2}models {8}claude-haiku-5-5\n {2}bodies {8}logged\n {2}expires {7}never\n/,
    )
    assert.match(shown.stdout, /\n {2}created {7}\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\n/)
    const json = await bench.run(way, ['keys', 'show', id, '--json'])
    assert.equal(json.stdout, `${await bench.api(`/v1/keys/${id}`)}\n`)

    const none = ['--monthly-budget', 'none', '--all-models', '--no-log-requests']
    const changed = await bench.run(way, [
      'keys',
      'update',
      id,
      ...none,
      '--expires-at',
      '2999-01-01T00:00:00Z',
    ])
    assert.equal(changed.code, 0, changed.stderr)
    assert.match(changed.stdout, /monthly cap {3}none\n[\s\S]*models {8}all\n {2}bodies {8}not logged\n/)
    assert.match(changed.stdout, /expires {7}2999-01-01 00:00:00 UTC\n/)
    const capped = await bench.run(way, [
      'keys',
      'update',
      id,
      '--monthly-budget',
      '0',
      '--expires-at',
      'never',
    ])
    assert.match(capped.stdout, /monthly cap {3}0 USD\n[\s\S]*expires {7}never\n/)
    assert.equal(await statusWith(key), 402)

    const rotated = await bench.run(way, ['keys', 'rotate', id, '--old-expires-in', '24h'])
    assert.equal(rotated.code, 0, rotated.stderr)
    assert.match(rotated.stdout, /^svc_live_[0-9A-Za-z]{49}\n$/)
    assert.match(
      rotated.stderr,
      new RegExp(`^In the place of ${id}, which ends in 24h, created key_\\w+ \\(${name}\\)`),
    )
    const old = JSON.parse(await bench.api(`/v1/keys/${id}`))
    assert.equal(Date.parse(old.expires_at) > Date.now() + 23 * 3_600_000, true)

    const revoked = await bench.start(way, ['keys', 'revoke', id]).finished
    assert.deepEqual([revoked.code, revoked.stdout], [0, `Revoked ${id} (${name}).\n`])
    assert.equal(await statusWith(key), 401)
    assert.equal(await statusWith(rotated.stdout.trim()), 402)
    const again = await bench.run(way, ['keys', 'revoke', id, '--json'])
    assert.equal(again.stdout, `${await bench.api(`/v1/keys/${id}`)}\n`)
    const late = await bench.run(way, ['keys', 'update', id, '--name', 'x'])
    assert.equal(late.code, 1)
    assert.equal(late.stderr, 'tollgate keys update: This key is revoked and cannot be changed any more.\n')
  })

  test(`keys are listed ${way}, as a table or as the API answers, in parts where there are many`, async () => {
    const names = ['first', 'second', 'third'].map((name) => `${name} listed ${way}`)
    for (const name of names) assert.equal((await bench.run(way, ['keys', 'create', '--name', name])).code, 0)
    const search = ['keys', 'list', '--search', `listed ${way}`]
    const all = await bench.run(way, search)
    const lines = all.stdout.split('\n')
    assert.match(lines[0] ?? '', /^id +status +key +spent +cap +last used \(UTC\) +name$/)
    assert.match(lines[1] ?? '', /^key_\w{26} {2}usable {2}svc_live_\w{7}…\w{4} +0\.00 +- {2}- +third listed/)
    assert.deepEqual([all.code, lines.length, all.stderr], [0, 5, ''])

    const two = await bench.run(way, [...search, '--limit', '2'])
    assert.equal(two.stdout.split('\n').length, 4)
    const next = /--after (key_\w{26}),/.exec(two.stderr)?.[1] ?? ''
    const rest = await bench.run(way, [...search, '--after', next])
    assert.match(rest.stdout, /first listed/)
    assert.doesNotMatch(rest.stdout, /second listed|third listed/)

    const json = await bench.run(way, ['keys', 'list', '--status', 'usable', '--limit', '3', '--json'])
    assert.equal(json.stdout, `${await bench.api('/v1/keys?status=usable&limit=3')}\n`)
    const none = await bench.run(way, ['keys', 'list', '--search', 'no such name'])
    assert.deepEqual([none.code, none.stdout], [0, ''])
    assert.match(none.stderr, /^There is no such key\./)
  })

  test(`what is refused ${way} ends with 1 and says what to do`, async () => {
    for (const action of ['show', 'revoke', 'rotate']) {
      const missing = await bench.run(way, ['keys', action, UNKNOWN])
      assert.deepEqual([missing.code, missing.stdout], [1, ''])
      assert.equal(missing.stderr, `tollgate keys ${action}: There is no key with this id.\n`)
    }
  })

  test(`the same --idempotency-key creates one key ${way}, and its secret is not shown again`, async () => {
    const once = ['--idempotency-key', `once ${way}`]
    const first = await bench.run(way, ['keys', 'create', '--name', `once ${way}`, ...once])
    assert.equal(first.code, 0)
    const second = await bench.run(way, ['keys', 'create', '--name', `once ${way}`, ...once])
    assert.deepEqual([second.code, second.stdout], [1, ''])
    assert.match(
      second.stderr,
      new RegExp(`done before, and made ${await idOf(`once ${way}`)} .*keys revoke`),
    )
    const other = await bench.run(way, ['keys', 'create', '--name', 'other', ...once])
    assert.equal(other.code, 1)
    assert.match(other.stderr, /Idempotency-Key was used for another request/)
  })
}

test('a wrong command line ends with 2 and names what is wrong with it', async () => {
  await assertAllWrong(bench, 'keys', [
    [['create'], /^tollgate keys create: --name: name is required\.\n\nUsage\n {2}tollgate keys create /],
    [['create', '--name', ''], /--name: name must not be empty/],
    [['create', '--name', 'x', '--monthly-budget', 'much'], /--monthly-budget: .* must be a number from 0/],
    [['create', '--name', 'x', '--monthly-budget', '0.0000000001'], /--monthly-budget: /],
    [['create', '--name', 'x', '--expires-at', '2020-01-01T00:00:00Z'], /--expires-at: .* in the future/],
    [['create', '--name', 'x', '--expires-at', 'soon'], /--expires-at: /],
    [['create', '--name', 'x', '--allow-model', ''], /--allow-model: /],
    [['create', '--name', 'x', '--allow-model', 'a', '--all-models'], /--allow-model and --all-models/],
    [
      ['create', '--name', 'x', '--log-requests', '--no-log-requests'],
      /--log-requests and --no-log-requests/,
    ],
    [['create', '--name', 'x', '--idempotency-key', 'ä'], /--idempotency-key: /],
    [['create', '--nmae', 'x'], /'--nmae'.* Did you mean --name\?\n/],
    [['lits'], /there is no action "lits"\. Did you mean list\?\n/],
    [['list', '--limit', '0'], /--limit: limit must be a whole number from 1 to 1000/],
    [['list', '--status', 'dead'], /--status: status must be one of usable, revoked, expired/],
    [['list', '--after', 'x'], /--after: /],
    [['list', '--search', ''], /--search: /],
    [['list', 'x'], /Unexpected argument 'x'/],
    [['show'], /name one <key> by its id, its name/],
    [['show', ''], /name one <key>/],
    [['show', UNKNOWN, UNKNOWN], /name one <key>/],
    [['show', 'x'.repeat(201)], /<key>: /],
    [['update', UNKNOWN], /say what to change, such as --monthly-budget/],
    [['update', UNKNOWN, '--monthly-budget', '-1'], /--monthly-budget/],
    [['revoke'], /<key>/],
    [['rotate', UNKNOWN, '--old-expires-in', '1y'], /--old-expires-in must be seconds/],
    [['rotate', UNKNOWN, '--old-expires-in', '9999d'], /--old-expires-in: /],
    [['destroy'], /there is no action "destroy"/],
    [['list', '--url', 'ftp://x'], /--url must be an address/],
    [['list', '--url', 'http://u:p@x'], /--url must be an address/],
    [
      ['list', '--url', 'http://127.0.0.1:9'],
      /--url needs an admin key: .*--admin-key-file.*TOLLGATE_ADMIN_KEY/,
    ],
    [['list', '--admin-key-file', 'x'], /--admin-key-file is for --url/],
  ])
})

test('a gateway that is not there, a wrong key and a folder without books are told apart', async () => {
  const { dataDir, url } = bench.gateway.tollgate
  const list = ['keys', 'list']
  const keyFile = ['--admin-key-file', join(dataDir, 'admin-key')]
  const nobody = `http://127.0.0.1:${await closedPort()}`
  const absent = await bench.run('locally', [...list, '--url', nobody, ...keyFile])
  assert.equal(absent.code, 1)
  assert.ok(absent.stderr.includes(`${nobody} `), absent.stderr)
  const noFile = await bench.run('locally', [
    ...list,
    '--url',
    url,
    '--admin-key-file',
    join(dataDir, 'none'),
  ])
  assert.equal(noFile.code, 1)
  assert.match(noFile.stderr, /--admin-key-file: .*none cannot be read/)
  const wrongKey = await bench.run('locally', [...list, '--url', url], {
    environment: { TOLLGATE_ADMIN_KEY: 'x'.repeat(40) },
  })
  assert.equal(wrongKey.code, 1)
  assert.match(wrongKey.stderr, /refused the key: .*Check --admin-key-file or TOLLGATE_ADMIN_KEY/)
  const nowhere = join(dataDir, 'nowhere')
  const noBooks = await bench.run('locally', list, {
    environment: { TOLLGATE_DATA_DIR: nowhere, TOLLGATE_DATABASE_URL: '' },
  })
  assert.equal(noBooks.code, 2)
  assert.match(noBooks.stderr, /TOLLGATE_DATA_DIR: there are no books in .*nowhere; .*--url/)
  assert.equal(existsSync(nowhere), false)
})

test('there is colour on a terminal, unless it is refused, and none in a pipe', async () => {
  const terminal = { columns: 120 }
  const list = ['keys', 'list', '--limit', '1']
  const coloured = await bench.run('locally', list, { terminal })
  assert.match(coloured.stdout, /\x1b\[1mid\x1b\[22m/)
  assert.match(coloured.stdout, /\x1b\[32musable\x1b\[39m/)
  const plain = (await bench.run('locally', list)).stdout
  assert.equal(coloured.stdout.replaceAll(/\x1b\[\d+m/g, ''), plain)
  assert.ok(!plain.includes('\x1b'))
  assert.equal((await bench.run('locally', [...list, '--no-color'], { terminal })).stdout, plain)
  const environment = { NO_COLOR: '1' }
  assert.equal((await bench.run('locally', list, { terminal, environment })).stdout, plain)
})

test('a name cannot draw on the terminal, and letters of any script stay', async () => {
  const name = 'Größe 東京 \u202egnp.exe'
  await bench.run('locally', ['keys', 'create', '--name', name])
  const id = await idOf('Größe')
  await bench.gateway.tamper(`UPDATE api_key SET name = '\x1b[2J' || name WHERE id = '${id}'`)
  for (const args of [
    ['show', id],
    ['list', '--limit', '1'],
    ['revoke', id],
  ]) {
    const { stdout } = await bench.run('locally', ['keys', ...args])
    assert.ok(stdout.includes('?[2JGröße 東京 ?gnp.exe'), stdout)
  }
})

test('each command explains itself', async () => {
  const overview = await bench.run('locally', ['keys'])
  assert.deepEqual([overview.code, overview.stdout.split('\n')[0]], [0, 'Usage'])
  const explain = async (action: string) => {
    assert.match(overview.stdout, new RegExp(`tollgate keys ${action} `))
    const help = await bench.run('locally', ['keys', action, '--help'])
    assert.deepEqual([help.code, help.stderr], [0, ''])
    assert.ok(help.stdout.startsWith(`Usage\n  tollgate keys ${action} `), help.stdout)
    assert.match(help.stdout, /\nExamples?\n[\s\S]*\nWhere\n[\s\S]*within a second[\s\S]*\nExit codes\n/)
  }
  await Promise.all(['create', 'list', 'show', 'update', 'revoke', 'rotate'].map(explain))
})
