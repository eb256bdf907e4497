import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { closedPort } from '../support/closed-port.ts'
import { runInThread } from '../support/command-thread.ts'
import { closeAfter, test } from '../support/suite.ts'
import { startCommandGateway } from './command-gateway.ts'

const commands = await startCommandGateway()
closeAfter(commands)

const NO_DATA = { TOLLGATE_DATA_DIR: '/nonexistent' }

test('the gateway URL comes from --url, TOLLGATE_URL, or TOLLGATE_HOST and TOLLGATE_PORT, in this order', async () => {
  const { gateway, environment } = commands
  const nowhere = 'http://127.0.0.1:9'
  const ways: readonly (readonly [readonly string[], Readonly<Record<string, string>>])[] = [
    [['--url', gateway.url], { TOLLGATE_URL: nowhere, TOLLGATE_PORT: '9' }],
    [['--url', `${gateway.url}/`], {}],
    [[], { TOLLGATE_URL: gateway.url, TOLLGATE_PORT: '9' }],
    [[], { TOLLGATE_URL: '', TOLLGATE_HOST: '0.0.0.0', TOLLGATE_PORT: String(gateway.port) }],
    [[], { TOLLGATE_URL: '', TOLLGATE_PORT: String(gateway.port) }],
  ]
  for (const [args, more] of ways) {
    const { code, stderr } = await runInThread(['balance', ...args], { ...environment, ...more })
    assert.equal(code, 0, `${args.join(' ')} ${JSON.stringify(more)}: ${stderr}`)
  }
})

test('the admin key comes from --admin-key-file, TOLLGATE_ADMIN_KEY or the data directory, in this order', async () => {
  const { gateway } = commands
  const url = { TOLLGATE_URL: gateway.url }
  const wrong = 'x'.repeat(40)
  const keyFile = join(gateway.dataDir, 'admin-key')
  const wrongFile = join(gateway.dataDir, 'wrong-key')
  writeFileSync(wrongFile, `${wrong}\n`)
  const run = async (args: readonly string[], more: Readonly<Record<string, string>>) =>
    await runInThread(['balance', ...args], { ...url, ...NO_DATA, ...more })
  assert.equal((await run(['--admin-key-file', keyFile], { TOLLGATE_ADMIN_KEY: wrong })).code, 0)
  assert.equal(
    (await run([], { TOLLGATE_ADMIN_KEY: gateway.adminKey, TOLLGATE_DATA_DIR: wrongFile })).code,
    0,
  )
  assert.equal((await run([], { TOLLGATE_DATA_DIR: gateway.dataDir })).code, 0)
  const refused = await run(['--admin-key-file', wrongFile], {})
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /refused the admin key: .* Check --admin-key-file or TOLLGATE_ADMIN_KEY\.\n$/)
  const none = await run([], {})
  assert.equal(none.code, 2)
  assert.match(
    none.stderr,
    /There is no admin key: .*there is no such file.* Set TOLLGATE_ADMIN_KEY or --admin-key-file/,
  )
  const unread = await run(['--admin-key-file', '/nonexistent/key'], {})
  assert.deepEqual([unread.code, unread.stderr.includes('/nonexistent/key cannot be read')], [1, true])
  const apiKey = await run([], { TOLLGATE_ADMIN_KEY: gateway.apiKey })
  assert.match(apiKey.stderr, /refused the admin key: .* The key is from TOLLGATE_ADMIN_KEY\./)
})

test('an invalid URL and an unreachable gateway are explained', async () => {
  const { environment } = commands
  for (const url of ['127.0.0.1:8787', 'ftp://x', 'http://user@x', 'http://x?a=b']) {
    const { code, stderr } = await runInThread(['balance', '--url', url], environment)
    assert.equal(code, 2, url)
    assert.match(stderr, /^tollgate: --url must be a URL such as http:\/\/127\.0\.0\.1:8787/)
  }
  const blocked = await runInThread(['balance', '--url', 'http://127.0.0.1:1'], environment)
  assert.equal(blocked.code, 1)
  assert.match(blocked.stderr, /does not connect to the port of .* Serve on another port \(TOLLGATE_PORT\)/)
  const port = await closedPort()
  const absent = await runInThread(['balance', '--url', `http://127.0.0.1:${port}`], environment)
  assert.equal(absent.code, 1)
  assert.match(
    absent.stderr,
    /cannot be reached: .*ECONNREFUSED.* Start the gateway, or name its URL with --url/,
  )
})

async function against(listener: RequestListener, ...args: readonly string[]) {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  try {
    return await runInThread([...args, '--url', url], commands.environment)
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

test('a command whose outcome is unknown says how to repeat it so that it runs only once', async () => {
  const add = ['credits', 'add', '5', '--reason', 'x', '--idempotency-key', 'once-1']
  const again =
    /The command may have taken effect\. Repeat it with --idempotency-key once-1: it runs only once\.\n$/
  const broken = await against((req) => req.socket.destroy(), ...add)
  assert.equal(broken.code, 1)
  assert.match(broken.stderr, /^tollgate: The connection to .* broke: /)
  assert.match(broken.stderr, again)
  const away = { message: 'The store is away.', code: 'store_unavailable', param: null }
  const unavailable = await against(
    (_, res) => res.writeHead(503).end(JSON.stringify({ error: away })),
    ...add,
  )
  assert.match(unavailable.stderr, again)
  const reading = await against((req) => req.socket.destroy(), 'balance')
  assert.match(reading.stderr, / broke: .*\. Try again\.\n$/)
})
