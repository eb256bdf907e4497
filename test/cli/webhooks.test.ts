import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { runInThread } from '../support/command-thread.ts'
import { booksVariable } from '../support/test-store.ts'
import { until } from '../support/until.ts'
import { WebhookReceiver } from '../support/webhook-receiver.ts'
import { ToldGateway, verified } from '../webhooks/told-gateway.ts'
import { WAYS, type Way } from './command-bench.ts'

const told = await ToldGateway.start()
const { gateway } = told
const receiver = await WebhookReceiver.start()
after(async () => {
  await receiver.close()
  await told.close()
})

const TOLLGATE_CONFIG = join(gateway.dataDir, 'tollgate.json')
writeFileSync(TOLLGATE_CONFIG, '{"webhooks":{"allow_private":true}}')

/** A command beside the gateway, on its books or over HTTP. */
function run(way: Way, ...args: readonly string[]) {
  const books = { TOLLGATE_DATA_DIR: gateway.dataDir, ...booksVariable(gateway), TOLLGATE_CONFIG }
  if (way === 'locally') return runInThread(['webhooks', ...args], books)
  const where = ['--url', gateway.url, '--admin-key-file', join(gateway.dataDir, 'admin-key')]
  return runInThread(['webhooks', ...args, ...where], { TOLLGATE_DATA_DIR: join(gateway.dataDir, 'nowhere') })
}

async function done(way: Way, ...args: readonly string[]) {
  const finished = await run(way, ...args)
  assert.equal(finished.code, 0, finished.stderr)
  return finished
}

const UNKNOWN = 'wh_01JCN1ZV5M3T9Q8W7E6R5T4Y3X'

for (const way of WAYS) {
  test(`a webhook is created, tested, shown, changed and deleted ${way}`, async () => {
    const before = receiver.messages.length
    const created = await done(way, 'create', receiver.url, '--event', 'key.created', '--description', 'ours')
    assert.match(created.stdout, /^whsec_\S+\n$/)
    const id = /Created (wh_\w{26})\./.exec(created.stderr)?.[1] ?? ''
    const queued = await done(way, 'test', id)
    const delivery = /^Queued (whd_\w{26})\./.exec(queued.stdout)?.[1] ?? ''
    const messages = await receiver.until((came) => came.length > before)
    assert.equal(verified(messages.at(-1) ?? assert.fail(), created.stdout.trim())['type'], 'webhook.test')
    await until('it is recorded', async () => (await run(way, 'deliveries', id)).stdout.includes('succeeded'))
    const deliveries = await done(way, 'deliveries', id, '--no-color')
    assert.match(
      deliveries.stdout,
      /^id +event +status +attempts +answer +last attempt \(UTC\) +next attempt \(UTC\) +error\n/,
    )
    assert.match(deliveries.stdout, new RegExp(`\\n${delivery} +webhook\\.test +succeeded +1 +204 +2`))
    await done(way, 'redeliver', id, delivery)
    await receiver.until((came) => came.length > before + 1)

    const shown = await done(way, 'show', id)
    assert.ok(
      shown.stdout.startsWith(`${id}\n  url           ${receiver.url}\n  state         enabled\n`),
      shown.stdout,
    )
    assert.match(
      shown.stdout,
      /\n {2}events {8}key\.created\n {2}format {8}standard\n {2}description {3}ours\n/,
    )
    assert.match(shown.stdout, /last delivery {1}.* UTC, status 204\n$/)
    assert.ok(!shown.stdout.includes('whsec_'))
    assert.match(
      (await done(way, 'list')).stdout,
      new RegExp(`\\n${id} +enabled +standard +2.* +204 +http://127`),
    )
    const json = JSON.parse((await done(way, 'list', '--json')).stdout)
    assert.equal(json.data[0].id, id)

    const changed = await done(way, 'update', id, '--disable', '--format', 'slack', '--event', '*')
    assert.match(changed.stdout, /\n {2}state {9}disabled, manual\n {2}events {8}\*\n {2}format {8}slack\n/)
    const refused = await run(way, 'test', id)
    assert.deepEqual([refused.code, refused.stdout], [1, ''])
    assert.match(refused.stderr, /^tollgate webhooks test: This webhook is disabled\./)
    assert.match((await done(way, 'update', id, '--enable')).stdout, /state {9}enabled/)
    const rotated = await done(way, 'rotate-secret', id, '--idempotency-key', `rotate ${id}`)
    const repeated = await run(way, 'rotate-secret', id, '--idempotency-key', `rotate ${id}`)
    assert.deepEqual([repeated.code, repeated.stdout], [1, ''])
    assert.match(repeated.stderr, /was done before\. The secret was shown then/)
    assert.match(rotated.stdout, /^whsec_\S+\n$/)
    assert.notEqual(rotated.stdout, created.stdout)
    assert.equal((await done(way, 'delete', id)).stdout, `Deleted ${id}.\n`)
    const gone = await run(way, 'show', id)
    assert.deepEqual(
      [gone.code, gone.stderr],
      [1, 'tollgate webhooks show: There is no webhook with this id.\n'],
    )
  })

  test(`what the API refuses is said ${way} in the words of the command line`, async () => {
    for (const [args, message] of [
      [['create', 'ftp://example.com'], /<endpoint>: url must be an absolute https:\/\/ URL\./],
      [['create', 'https://hooks.invalid', '--event', 'key.gone'], /--event: events must be/],
      [['create', 'https://hooks.invalid', '--format', 'teams'], /--format: format must be one of/],
    ] as const) {
      const wrong = await run(way, ...args)
      assert.deepEqual([wrong.code, wrong.stdout], [2, ''], args.join(' '))
      assert.match(wrong.stderr, message)
    }
  })
}

test('a command line that is wrong says what is missing, and does nothing', async () => {
  for (const [args, message] of [
    [['create'], /name one <endpoint>/],
    [['show'], /name one webhook by its <id>/],
    [['redeliver'], /name one webhook by its <id>/],
    [['show', 'ci'], /<id>: ci is none; it is wh_ and 26 characters/],
    [['update', UNKNOWN], /say what to change, such as --enable/],
    [['update', UNKNOWN, '--enable', '--disable'], /cannot be used together/],
    [['redeliver', UNKNOWN], /name the <delivery-id>/],
    [['creat'], /there is no action "creat"\. Did you mean create\?/],
  ] as const) {
    const wrong = await run('locally', ...args)
    assert.deepEqual([wrong.code, wrong.stdout], [2, ''], args.join(' '))
    assert.match(wrong.stderr, message)
  }
})

test('a repeated --idempotency-key makes one webhook, and its secret is not shown again', async () => {
  const args = ['create', receiver.url, '--idempotency-key', 'once'] as const
  const id = /wh_\w{26}/.exec((await done('locally', ...args)).stderr)?.[0] ?? ''
  const again = await run('over HTTP', ...args)
  assert.deepEqual([again.code, again.stdout], [1, ''])
  assert.match(again.stderr, new RegExp(`made ${id}\\. Its secret was shown then`))
  await done('locally', 'delete', id)
})

test('a key that is made on the command line is told by the gateway that runs', async () => {
  const { receiver, path } = await told.subscribe(['key.created'])
  const books = { TOLLGATE_DATA_DIR: gateway.dataDir, ...booksVariable(gateway) }
  const made = await runInThread(['keys', 'create', '--name', 'by command'], books)
  assert.equal(made.code, 0, made.stderr)
  const [message] = await receiver.untilTypes('key.created')
  assert.match(message?.body ?? '', /"name":"by command"/)
  assert.ok(path.length > 0)
})
