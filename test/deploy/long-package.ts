import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { root } from '../style/source-tree.ts'
import { createDatabase } from '../support/postgres.ts'
import { after, before, test } from '../support/suite.ts'
import { cleanEnvironment, type Program, runTollgate, serveTollgate } from '../support/tollgate-process.ts'
import { until } from '../support/until.ts'

/**
 * `npm run test:long -- package`: packs a clean copy, installs the tarball in an empty folder, and runs what it installed.
 * The tarball has its dependencies, so that it installs without a network and in these versions: npm obeys a shrinkwrap
 * only if a package comes from a registry.
 */

const execute = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'tollgate-package-'))
const packaged = join(folder, 'node_modules/tollgate')
const installed: Program = [join(folder, 'node_modules/.bin/tollgate')]
let packed: readonly string[] = []

function npm(cwd: string, ...args: readonly string[]) {
  return execute('npm', args, { cwd, env: cleanEnvironment({}), maxBuffer: 16 * 1024 * 1024 })
}

before(async () => {
  const clone = join(folder, 'clone')
  const { stdout } = await execute('git', ['ls-files', '-co', '--exclude-standard'], { cwd: root })
  for (const file of stdout.split('\n').filter((name) => name !== '' && existsSync(join(root, name))))
    cpSync(join(root, file), join(clone, file))
  symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'))
  mkdirSync(join(clone, 'dist/src'), { recursive: true })
  cpSync(join(root, 'package.json'), join(clone, 'dist/src/left-by-an-earlier-build.js'))
  const report = await npm(clone, 'pack', '--json', '--pack-destination', folder)
  // What the scripts print comes before the report.
  const [pack] = JSON.parse(report.stdout.slice(report.stdout.search(/^\[$/m))) as Pack[]
  packed = pack?.files.map(({ path }) => path) ?? []
  assert.ok(!existsSync(join(clone, 'npm-shrinkwrap.json')), 'npm ci would read it instead of the lock file')
  await npm(folder, 'install', '--offline', '--omit=dev', '--no-audit', '--no-fund', `./${pack?.filename}`)
})
after(() => rmSync(folder, { recursive: true }))

interface Pack {
  readonly filename: string
  readonly files: readonly { readonly path: string }[]
}

test('the package has its build, docs and deployment files, and nothing else', async () => {
  const other = packed.filter(
    (path) =>
      !/^(?:dist\/(?:src|simulator|dashboard)|deploy|docs|examples|node_modules)\/|^[^/]+$/.test(path),
  )
  assert.deepEqual(other, [])
  assert.deepEqual(
    packed.filter(
      (path) => !path.startsWith('node_modules/') && /left-by-an-earlier|\.ts$|\.map$/.test(path),
    ),
    [],
  )
  const { size } = await sizeOf(join(folder, 'node_modules'))
  process.stdout.write(`The package installs ${(size / 1024).toFixed(1)} MB\n`)
})

async function sizeOf(path: string): Promise<{ readonly size: number }> {
  return { size: Number.parseInt((await execute('du', ['-sk', path])).stdout, 10) }
}

test('the package contains every file that it reads besides its code, and the code of every thread', () => {
  const named = globSync('dist/**/*.js', { cwd: packaged }).flatMap((file) => {
    const text = readFileSync(join(packaged, file), 'utf8')
    const urls = [...text.matchAll(/new URL\('(\.[^']+)', import\.meta\.url\)/g)]
    const imports = [...text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)]
    return [...urls, ...imports].map(([, path = '']) => join(dirname(join(packaged, file)), path))
  })
  assert.ok(named.filter((file) => /worker|thread/.test(file)).length >= 3, 'no thread was found')
  assert.ok(named.some((file) => file.endsWith('list-prices.json')))
  // Only a clone has the dashboard's source, whose build may be older.
  const read = named.filter((file) => !file.endsWith('/dashboard/src/'))
  assert.deepEqual(
    read.filter((file) => !existsSync(file)),
    [],
  )
})

test('the package installs every dependency in the version of the lock file and of its shrinkwrap', () => {
  const versionsIn = (file: string, within: string) => {
    const { packages } = JSON.parse(readFileSync(file, 'utf8')) as Lock
    const installed = Object.entries(packages).filter(
      ([path, { dev }]) => path.startsWith(within) && dev !== true,
    )
    return Object.fromEntries(installed.map(([path, { version }]) => [path.slice(within.length), version]))
  }
  const locked = versionsIn(join(root, 'package-lock.json'), 'node_modules/')
  const own = 'node_modules/tollgate/node_modules/'
  assert.deepEqual(versionsIn(join(folder, 'node_modules/.package-lock.json'), own), locked)
  assert.deepEqual(versionsIn(join(packaged, 'npm-shrinkwrap.json'), 'node_modules/'), locked)
  assert.doesNotMatch(readFileSync(join(packaged, 'npm-shrinkwrap.json'), 'utf8'), /"resolved"/)
})

interface Lock {
  readonly packages: Readonly<Record<string, { readonly version: string; readonly dev?: true }>>
}

/** The variables and the command of a file in deploy/, with the paths of this installation. */
const dockerfile = readFileSync(join(root, 'deploy/Dockerfile'), 'utf8')
const unit = readFileSync(join(root, 'deploy/tollgate.service'), 'utf8')
const here = (path: string) =>
  path
    .replace(/^\/usr\/(?:local\/)?lib\/node_modules/, join(folder, 'node_modules'))
    .replace('/usr/bin/node', 'node')
const healthcheck = (JSON.parse(/^HEALTHCHECK .*CMD (.+)$/m.exec(dockerfile)?.[1] ?? '') as string[]).map(
  here,
)

const WAYS: Readonly<Record<string, () => Promise<{ program: Program; databaseUrl: string }>>> = {
  'the command on SQLite': async () => ({ program: installed, databaseUrl: '' }),
  'the command on PostgreSQL': async () => ({
    program: installed,
    databaseUrl: (await createDatabase()).url,
  }),
  'the command of tollgate.service': async () => {
    const [file = '', ...args] = /^ExecStart=(.+) serve$/m.exec(unit)?.[1]?.split(' ').map(here) ?? []
    return { program: [file, ...args], databaseUrl: '' }
  },
}

for (const [name, prepare] of Object.entries(WAYS))
  test(`${name} serves, is healthy, makes calls, bills a cut stream, audits its ledger and stops`, async () => {
    const { program, databaseUrl } = await prepare()
    const config = join(packaged, 'deploy/tollgate.json')
    const startedMs = performance.now()
    const variables = { NODE_OPTIONS: '--max-semi-space-size=16', TOLLGATE_SIMULATOR: 'true' }
    const gateway = await serveTollgate(
      { ...variables, TOLLGATE_DATABASE_URL: databaseUrl, TOLLGATE_CONFIG: config },
      program,
    )
    process.stdout.write(`${name} serves after ${Math.round(performance.now() - startedMs)} ms\n`)
    const { url, environment } = gateway
    const tollgate = async (...args: readonly string[]) => {
      const { code, stdout, stderr } = await runTollgate(args, environment, folder, installed)
      assert.equal(code, 0, `tollgate ${args.join(' ')}\n${stderr}`)
      return stdout
    }
    const [checker = '', ...check] = healthcheck
    const env = (port: string) => cleanEnvironment({ TOLLGATE_PORT: port })
    await execute(checker, check, { env: env(new URL(url).port) })
    await assert.rejects(execute(checker, check, { env: env('1') }))

    const dashboard = await (await fetch(`${url}/dashboard`)).text()
    const [, script = 'no script'] = /src="([^"]+\.js)"/.exec(dashboard) ?? []
    assert.equal((await fetch(url + script)).status, 200, dashboard)

    const key = await tollgate('keys', 'create', '--name', 'first')
    const call = (body: object, signal: AbortSignal | null = null) =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key.trim()}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'gpt-6-luna',
          messages: [{ role: 'user', content: 'Hello' }],
          ...body,
        }),
        signal,
      })
    const answer = await call({})
    assert.equal(answer.status, 200)
    assert.ok(Number(answer.headers.get('x-svc-cost-usd')) > 0)
    await answer.text()
    const leaving = new AbortController()
    const stream = await call({ stream: true }, leaving.signal)
    await stream.body?.getReader().read()
    leaving.abort()
    await until('both calls are settled', async () => {
      const calls = await tollgate('requests', '--format', 'ndjson')
      return calls.match(/"state": ?"settled"/g)?.length === 2
    })

    const checked = await tollgate('doctor', '--offline', '--json')
    assert.equal((JSON.parse(checked) as { ok: boolean }).ok, true, checked)
    gateway.signal('SIGTERM')
    assert.equal((await gateway.finished).code, 0)
    await tollgate('audit')
    await gateway.dispose()
  })
