import assert from 'node:assert/strict'
import { closeAfter, test } from '../support/suite.ts'
import { startCommandGateway } from './command-gateway.ts'

const commands = await startCommandGateway()
closeAfter(commands)

const recordOf = async (id: string) => await commands.gateway.manage('GET', `/v1/keys/${id}`)

test('a key is created, shown, updated and revoked', async () => {
  const { run, done } = commands
  const args = ['--name', 'checkout', '--monthly-budget', '25.5', '--allow-model', 'claude-haiku-5-5']
  const more = ['--allow-model', 'claude-opus-4-8', '--log-requests', '--expires-at', '2999-01-31T00:00:00Z']
  const created = await run('keys', 'create', ...args, ...more)
  assert.match(created.stdout, /^svc_live_[0-9A-Za-z]{49}\n$/)
  const [, id = ''] =
    /^Created (key_\w{26}) \(checkout\)\. The key is shown only once:\n$/.exec(created.stderr) ?? []
  const record = await recordOf(id)
  assert.deepEqual(
    [record['monthly_budget_usd'], record['allowed_models'], record['log_requests'], record['expires_at']],
    [25.5, ['claude-haiku-5-5', 'claude-opus-4-8'], true, '2999-01-31T00:00:00.000Z'],
  )
  const shown = await done('keys', 'show', 'checkout')
  assert.match(shown, new RegExp(`^id +${id}\n`))
  for (const line of [
    /^name +checkout$/m,
    /^monthly_budget_usd +25\.5$/m,
    /^allowed_models +claude-haiku-5-5, claude-opus-4-8$/m,
    /^log_requests +yes$/m,
    /^expires_at +2999-01-31 00:00:00 UTC$/m,
  ])
    assert.match(shown, line)
  assert.deepEqual(JSON.parse(await done('keys', 'show', id, '--json')), await recordOf(id))

  await done('keys', 'update', 'checkout', '--monthly-budget', 'none', '--all-models')
  const changed = await done('keys', 'update', id, '--no-log-requests', '--expires-at', 'never')
  assert.match(changed, /^log_requests +no$/m)
  assert.doesNotMatch(changed, /budget_usd|allowed_models|expires_at/)
  assert.equal(await done('keys', 'revoke', id), `Revoked ${id} (checkout).\n`)
  assert.equal((await recordOf(id))['status'], 'revoked')
  const final = await run('keys', 'update', id, '--name', 'x')
  assert.deepEqual([final.code, final.stdout], [1, ''])
  assert.match(final.stderr, /^tollgate: .*revoked/)
})

test('every limit has an option in create and update', async () => {
  const { done, run } = commands
  const limits = ['--daily-budget', '5', '--rpm', '60', '--budget-mode', 'settled']
  await done(
    'keys',
    'create',
    '--name',
    'limited',
    ...limits,
    '--metadata',
    'team=web',
    '--metadata',
    'a=b=c',
  )
  const shown = await done('keys', 'show', 'limited')
  for (const line of [
    /^daily_budget_usd +5$/m,
    /^requests_per_minute +60$/m,
    /^budget_mode +settled$/m,
    /^metadata\.a +b=c\nmetadata\.team +web$/m,
  ])
    assert.match(shown, line)
  assert.match(
    await done('keys', 'list', '--search', 'metadata.team:web'),
    /spent +daily budget +rpm[\s\S]* 0\.00 +5\.00 +60 .*limited/,
  )
  const removed = ['--daily-budget', 'none', '--rpm', 'none', '--budget-mode', 'none', '--metadata', 'none']
  const unlimited = await done('keys', 'update', 'limited', ...removed)
  assert.doesNotMatch(unlimited, /budget_usd|requests_per_minute|budget_mode|metadata/)
  for (const [option, value, message] of [
    ['--rpm', 'many', /^tollgate: --rpm: requests_per_minute must be a whole number/],
    ['--budget-mode', 'lax', /^tollgate: --budget-mode: budget_mode must be exact or settled/],
    ['--metadata', 'team', /--metadata must be a name and a value/],
  ] as const) {
    const { code, stderr } = await run('keys', 'update', 'limited', option, value)
    assert.equal(code, 2)
    assert.match(stderr, message)
  }
})

test('after a rotation the list distinguishes two keys of the same name', async () => {
  const { run, done } = commands
  const old = (await done('keys', 'create', '--name', 'twice')).trim()
  const rotated = await run('keys', 'rotate', 'twice', '--old-expires-in', '86400')
  const fresh = rotated.stdout.trim()
  assert.match(rotated.stderr, /^Created key_\w{26} \(twice\)\. key_\w{26} expires in 86400 s\./)
  const listed = await done('keys', 'list', '--search', 'twice')
  const [, first = '', second = ''] = listed.split('\n')
  assert.match(first, new RegExp(`usable .* ${fresh.slice(-4)} .* - +twice$`))
  assert.match(second, new RegExp(`usable .* ${old.slice(-4)} .* 20[\\d-]+ [\\d:]+ +twice$`))
  const both = await run('keys', 'revoke', 'twice')
  assert.equal(both.code, 1)
  assert.match(both.stderr, /Several keys match "twice"\. Use the id of the key:\n {2}key_.*\n {2}key_.*\n$/)
  // A full secret given by mistake finds its key and is not printed.
  const whole = await run('keys', 'revoke', old)
  assert.match(whole.stdout, /^Revoked key_\w{26} \(twice\)\.\n$/)
  assert.match(await done('keys', 'show', 'twice'), new RegExp(`^last4 +${fresh.slice(-4)}$`, 'm'))
  const unknown = await run('keys', 'show', `${fresh.slice(0, -1)}!`)
  assert.equal(unknown.code, 1)
  assert.ok(!unknown.stderr.includes(fresh.slice(0, 20)), unknown.stderr)
})

test('a key is found by id, name, prefix or last four characters, and a similar name is suggested', async () => {
  const { run, done } = commands
  const key = (await done('keys', 'create', '--name', 'found, by name')).trim()
  const shown = await done('keys', 'show', 'found, by name')
  const [id = ''] = /key_\w{26}/.exec(shown) ?? []
  for (const named of [id, key.slice(0, 16), key.slice(-4), `${key.slice(0, 16)}…${key.slice(-4)}`])
    assert.equal(await done('keys', 'show', named), shown, named)
  // A key named like the prefix of another makes that prefix ambiguous.
  await commands.gateway.createKey(key.slice(0, 16))
  const trap = await run('keys', 'revoke', key.slice(0, 16))
  assert.deepEqual([trap.code, trap.stdout], [1, ''])
  const shared = await run('keys', 'revoke', 'svc_live_')
  assert.match(shared.stderr, /There is no key "svc_live_"/)
  const near = await run('keys', 'show', 'found')
  assert.match(near.stderr, /There is no key "found"\. Did you mean:\n {2}key_.* found, by name\n$/)
  const none = await run('keys', 'show', 'nothing like it')
  assert.match(none.stderr, /There is no key "nothing like it"\. `tollgate keys list` lists them\.\n$/)
})

test("lists are paged and filtered, and --json prints the API's response", async () => {
  const { run, done, gateway } = commands
  const page = await run('keys', 'list', '--limit', '1')
  const [, next] = /add --after (\S+) or a larger --limit\.\n$/.exec(page.stderr) ?? []
  assert.match(page.stdout, /^id +status {2}prefix +last4 +spent .*name\nkey_.*\n$/)
  const second = await done('keys', 'list', '--limit', '1', '--after', String(next))
  assert.notEqual(second, page.stdout)
  const json = JSON.parse(await done('keys', 'list', '--status', 'usable', '--json'))
  assert.deepEqual(json, await gateway.manage('GET', '/v1/keys?status=usable'))
  const none = await run('keys', 'list', '--search', 'no such name')
  assert.deepEqual([none.code, none.stdout], [0, ''])
  assert.equal(none.stderr, 'No keys match.\n')
})

test('a refused value exits with 2 and is named', async () => {
  const { run } = commands
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [['create'], /^tollgate: --name: name is required/],
    [
      ['create', '--name', 'x', '--monthly-budget', 'much'],
      /^tollgate: --monthly-budget: monthly_budget_usd must be a number/,
    ],
    [
      ['create', '--name', 'x', '--monthly-budget', '-1'],
      /^tollgate: --monthly-budget: monthly_budget_usd must be a number/,
    ],
    [
      ['create', '--name', 'x', '--expires-at', '2001-01-01T00:00:00Z'],
      /--expires-at: expires_at must be in the future/,
    ],
    [['update', 'test'], /There is nothing to change\. Add an option, such as --monthly-budget 200/],
    [
      ['update', 'test', '--allow-model', 'x', '--all-models'],
      /--allow-model and --all-models cannot be used together/,
    ],
    [
      ['create', '--name', 'x', '--rpm', '0'],
      /--rpm: requests_per_minute must be a whole number from 1 to 1000000, or null\./,
    ],
    [
      ['create', '--name', 'x', '--allow-model', 'a*b'],
      /--allow-model: Each of allowed_models must be a model/,
    ],
    [['rotate', 'test', '--old-expires-in', 'soon'], /--old-expires-in must be a number of seconds/],
    [['list', '--limit', '0'], /--limit: limit must be/],
    [['list', '--status', 'odd'], /--status: status must be/],
  ]
  for (const [args, message] of cases) {
    const { code, stdout, stderr } = await run('keys', ...args)
    assert.deepEqual([code, stdout], [2, ''], args.join(' '))
    assert.match(stderr, message)
  }
})
