import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import { startGateway } from '../support/gateway.ts'
import { exchange } from '../support/raw-client.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { after, test } from '../support/suite.ts'
import { message } from '../support/wire-bytes.ts'
import { headerValues } from '../support/wire-message.ts'

const PAGE = '<!doctype html><script type="module" src="/dashboard/assets/index-1a2b3c.js"></script>'
const SCRIPT = `console.log(${JSON.stringify('calm and dense '.repeat(50))})`
const STYLE = 'body { margin: 0 }'

const folder = await mkdtemp(join(tmpdir(), 'tollgate-dashboard-'))
const built = pathToFileURL(`${join(folder, 'built')}/`)

async function build(): Promise<void> {
  await mkdir(new URL('assets', built), { recursive: true })
  const files = { 'index.html': PAGE, 'assets/index-1a2b3c.js': SCRIPT, 'assets/index-9f8e7d.css': STYLE }
  for (const [name, text] of Object.entries(files)) {
    await writeFile(new URL(name, built), text)
    if (name.endsWith('.css')) continue
    await writeFile(new URL(`${name}.br`, built), brotliCompressSync(text))
    await writeFile(new URL(`${name}.gz`, built), gzipSync(text))
  }
  await writeFile(join(folder, 'secret.txt'), 'not for everybody')
}

const upstream = await ScriptedUpstream.start()
const gateway = await startGateway({
  messagesUrl: upstream.url,
  chatUrl: `${upstream.url}/v1`,
  dashboardDir: built,
})
after(async () => {
  await gateway.close()
  await upstream.close()
  await rm(folder, { recursive: true })
})

async function ask(target: string, lines: readonly string[] = [], method = 'GET') {
  const bytes = message(`${method} ${target} HTTP/1.1`, ['Host: h', ...lines])
  const { status, headerLines, body } = await exchange(gateway, bytes, { method })
  return { status, body, header: (name: string) => headerValues(headerLines, name).join() }
}

const JS = '/dashboard/assets/index-1a2b3c.js'

test('a missing dashboard build answers how to build it, and is served once built', async () => {
  const unbuilt = await ask('/dashboard')
  assert.equal(unbuilt.status, 404)
  assert.match(unbuilt.body.toString(), /npm run build:dashboard/)
  await build()
  assert.equal((await ask('/dashboard')).status, 200)
})

test('every dashboard path serves the page, without a key and without caching', async () => {
  const paths = [
    '/dashboard',
    '/dashboard/',
    '/dashboard/keys',
    '/dashboard/keys/key_1?x=1',
    '/dashboard/assets',
  ]
  for (const path of paths) {
    for (const key of [[], ['Authorization: Bearer nonsense'], [`x-api-key: ${gateway.apiKey}`]]) {
      const page = await ask(path, key)
      assert.equal(page.status, 200, path)
      assert.equal(page.body.toString(), PAGE)
      assert.equal(page.header('content-type'), 'text/html; charset=utf-8')
      assert.equal(page.header('cache-control'), 'no-cache')
    }
  }
})

test('the page loads only from its own origin, without inline scripts or framing', async () => {
  const { header } = await ask('/dashboard/usage')
  const policy = header('content-security-policy').split('; ')
  assert.deepEqual(policy, [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "font-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ])
  assert.equal(header('referrer-policy'), 'no-referrer')
  assert.equal(header('x-content-type-options'), 'nosniff')
  assert.equal(header('cross-origin-opener-policy'), 'same-origin')
  assert.match(header('permissions-policy'), /camera=\(\)/)
})

test('an asset is immutable in caches and has the type of its extension', async () => {
  const script = await ask(JS)
  assert.equal(script.body.toString(), SCRIPT)
  assert.equal(script.header('content-type'), 'text/javascript; charset=utf-8')
  assert.equal(script.header('cache-control'), 'public, max-age=31536000, immutable')
  assert.equal(script.header('x-content-type-options'), 'nosniff')
  assert.equal(
    (await ask('/dashboard/assets/index-9f8e7d.css')).header('content-type'),
    'text/css; charset=utf-8',
  )
})

test('a file is sent in the smallest coding that the client accepts', async () => {
  const codings: readonly (readonly [string, string])[] = [
    ['gzip, deflate, br, zstd', 'br'],
    ['br;q=0, gzip', 'gzip'],
    ['gzip;q=0.5', 'gzip'],
    ['*', 'br'],
    ['*;q=0', ''],
    ['identity', ''],
    ['', ''],
  ]
  const decode = { br: brotliDecompressSync, gzip: gunzipSync } as const
  for (const [accepted, coding] of codings) {
    const { header, body } = await ask(JS, [`Accept-Encoding: ${accepted}`])
    assert.equal(header('content-encoding'), coding, accepted)
    assert.equal(header('vary'), 'accept-encoding')
    const plain = coding === '' ? body : decode[coding as keyof typeof decode](body)
    assert.equal(plain.toString(), SCRIPT)
  }
  // A file without a compressed copy is sent as it is.
  const style = await ask('/dashboard/assets/index-9f8e7d.css', ['Accept-Encoding: br'])
  assert.equal(style.header('content-encoding'), '')
  assert.equal(style.body.toString(), STYLE)
})

test('an unknown asset is 404, and a path cannot leave the assets folder', async () => {
  const missing = [
    '',
    'index-0.js',
    'index.html',
    'index-1a2b3c.js.br',
    '__proto__',
    'a/b.js',
    'INDEX-1A2B3C.JS',
  ]
  for (const name of missing) assert.equal((await ask(`/dashboard/assets/${name}`)).status, 404, name)
  const ways = [
    '../index.html',
    '..%2f..%2fsecret.txt',
    '%2e%2e/%2e%2e/secret.txt',
    '..\\..\\secret.txt',
    '/secret.txt',
  ]
  for (const way of ways) assert.equal((await ask(`/dashboard/assets/${way}`)).status, 400, way)
})

test('only a browser at / is redirected to the dashboard', async () => {
  const html = 'Accept: text/html,application/xhtml+xml,*/*;q=0.8'
  const received = upstream.requestCount
  const sent = await ask('/', [html])
  assert.equal(sent.status, 302)
  assert.equal(sent.header('location'), '/dashboard')
  // These requests go upstream and are refused without a key.
  for (const lines of [
    [],
    ['Accept: */*'],
    ['Accept: application/json'],
    ['Accept: application/json, text/html;q=0.9'],
    ['Accept: application/json, text/html'],
    ['Accept: text/plain, text/html;q=0.5'],
    ['Accept: text/html;q=0'],
    [html, 'Authorization: Bearer x'],
  ]) {
    assert.equal((await ask('/', lines)).status, 401)
  }
  assert.equal((await ask('/index.html', [html])).status, 401)
  assert.equal((await ask('/', [html, 'Content-Length: 0'], 'POST')).status, 401)
  assert.equal(upstream.requestCount, received)
})

test('a request for / with a key goes upstream, whatever it accepts', async () => {
  const asked = upstream.nextRequest()
  await ask('/', ['Accept: text/html', 'anthropic-version: 2023-06-01', `x-api-key: ${gateway.apiKey}`])
  assert.equal((await asked).requestLine, 'GET / HTTP/1.1')
})
