import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { COMMAND_NAMES } from '../../src/cli/program.ts'
import { closeAfter, test } from '../support/suite.ts'
import { WebhookReceiver } from '../support/webhook-receiver.ts'
import { startCommandGateway } from './command-gateway.ts'

const commands = await startCommandGateway({ webhooksAllowPrivate: true })
closeAfter(commands)
const { done, run } = commands

test('a webhook is created, tested, listed with its deliveries, changed and deleted', async () => {
  const receiver = await WebhookReceiver.start()
  try {
    const created = await run(
      'webhooks',
      'create',
      receiver.url,
      '--event',
      'key.created',
      '--event',
      'key.revoked',
    )
    assert.match(created.stdout, /^whsec_\S+\n$/)
    const [, id = ''] = /^(wh_\w+) .*shown only once:\n$/.exec(created.stderr) ?? []
    assert.match(await done('webhooks', 'list'), /key\.created, key\.revoked/)
    await done('webhooks', 'test', id)
    await receiver.untilTypes('webhook.test')
    const deliveries = JSON.parse(await done('webhooks', 'deliveries', id, '--json')) as {
      data: { id: string }[]
    }
    const [delivery] = deliveries.data
    await done('webhooks', 'redeliver', id, delivery?.id ?? '')
    await receiver.until(({ length }) => length === 2)
    assert.match(await done('webhooks', 'update', id, '--enabled', 'no'), /^enabled +no$/m)
    assert.match(await done('webhooks', 'update', id, '--format', 'slack'), /^format +slack$/m)
    assert.match(await done('webhooks', 'create', receiver.url, '--format', 'slack'), /^whsec_/)
    assert.match(await done('webhooks', 'rotate-secret', id), /^whsec_/)
    const deleted = { object: 'webhook', id, deleted: true }
    assert.deepEqual(JSON.parse(await done('webhooks', 'delete', id, '--json')), deleted)
    assert.equal((await run('webhooks', 'show', id)).code, 1)
    assert.match(
      (await run('webhooks', 'create', 'ftp://x')).stderr,
      /^tollgate: url: |^tollgate: .*url must/,
    )
  } finally {
    await receiver.close()
  }
})

test('events lists the activity, and status what needs attention', async () => {
  await done('keys', 'create', '--name', 'watched')
  assert.match(await done('events', '--type', 'key.created'), /key\.created +watched/)
  assert.match(await done('events', '--format', 'csv'), /^[\w,]+\r?\n/)
  assert.match((await run('events', '--type', 'odd')).stderr, /^tollgate: --type: type must be one of/)
  const status = await done('status')
  assert.match(status, /^version +\S+$/m)
  assert.match(status, /Nothing needs attention\.\n$/)
})

test('with --url, admin-key manages the keys of a running gateway', async () => {
  const remote = ['--url', commands.gateway.url] as const
  const created = await run(
    'admin-key',
    'create',
    '--name',
    'remote',
    '--role',
    'viewer',
    '--account',
    'default',
    ...remote,
  )
  assert.match(created.stdout, /^svc_admin_/, created.stderr)
  const [, id = ''] = /^Created (adm_\w+)/.exec(created.stderr) ?? []
  for (const args of [remote, []]) {
    const { data } = JSON.parse(await done('admin-key', 'list', '--json', ...args)) as {
      data: { id: string }[]
    }
    assert.ok(data.some((key) => key.id === id))
  }
  assert.equal(await done('admin-key', 'revoke', id, ...remote), `Revoked ${id} (remote).\n`)
})

test('requests --follow prints each call once when it has ended', async () => {
  const { key } = await commands.gateway.createKey('followed')
  const following = commands.start(['requests', '--follow', '--key', 'followed', '--json'])
  const seen: string[] = []
  const first = following.printed(/\n/)
  // The command prints what ends after its first look, whose time the test cannot see.
  let stopped = false
  const calling = (async () => {
    while (!stopped) seen.push(await commands.call(key, 10))
  })()
  const line = (await first).split('\n', 1)[0] ?? ''
  stopped = true
  await calling
  assert.ok(seen.includes((JSON.parse(line) as { id: string }).id))
  following.signal('SIGTERM')
  await following.finished
})

test('completion offers the commands, the subcommands and the options of the command table', async () => {
  const words = async (...typed: readonly string[]) =>
    (await done('completion', 'words', '--', ...typed)).trim().split('\n')
  for (const name of COMMAND_NAMES) assert.ok((await words()).includes(name), name)
  assert.ok((await words('webhooks')).includes('rotate-secret'))
  assert.ok((await words('keys', 'create')).includes('--monthly-budget'))
  assert.deepEqual(await words('events', '--format'), ['csv'])
  for (const shell of ['bash', 'zsh', 'fish'])
    assert.match(await done('completion', shell), /completion words/)
  const { status, stderr } = spawnSync('bash', ['-n'], {
    input: await done('completion', 'bash'),
    encoding: 'utf8',
  })
  assert.deepEqual([status, stderr], [0, ''])
  assert.equal((await run('completion', 'tcsh')).code, 2)
})
