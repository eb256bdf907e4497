import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { curlStandIn } from '../support/curl-stand-in.ts'
import { readBlocks } from '../support/document-blocks.ts'
import { after, before, test } from '../support/suite.ts'
import { runTollgate, type ServingProcess, serveTollgate } from '../support/tollgate-process.ts'

/** Runs every block of the runbook, unchanged, on a gateway whose key its owner and a thief have used. */

const execute = promisify(execFile)
const blocks = readBlocks('docs/KEYS.md').filter(({ section }) => /^\d\. /.test(section))

const HOLDER = 'checkout/2.1 (node)'
/** A user agent that could break a shell, a spreadsheet or a terminal. */
const THIEF = `=cmd|'/c x'!A1 "; touch pwned; $(touch pwned) \`touch pwned\``
const MODELS = ['claude-haiku-5-5', 'claude-opus-4-8', 'gpt-6-luna']
const LIMITS = {
  monthly_budget_usd: 123.456789,
  allowed_models: MODELS,
  expires_at: '2999-01-01T00:00:00.000Z',
}
interface Made {
  readonly id: string
  readonly by: string
}

let tollgate: ServingProcess
let adminKey = ''
const curl = curlStandIn()
const commands = mkdtempSync(join(tmpdir(), 'tollgate-bin-'))
before(async () => {
  const program = fileURLToPath(new URL('../../src/cli/tollgate.ts', import.meta.url))
  const script = `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`
  writeFileSync(join(commands, 'tollgate'), script, { mode: 0o755 })
  tollgate = await serveTollgate()
  adminKey = readFileSync(join(tollgate.dataDir, 'admin-key'), 'utf8').trim()
})
after(async () => {
  curl.dispose()
  rmSync(commands, { recursive: true })
  await tollgate.dispose()
})

async function manage(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
  const response = await fetch(tollgate.url + path, {
    method,
    headers: { authorization: `Bearer ${adminKey}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const json = (await response.json()) as Record<string, unknown>
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${JSON.stringify(json)}`)
  return json
}

const hello = { max_tokens: 9, messages: [{ role: 'user', content: 'Hello' }] }

interface Call {
  readonly model?: string
  readonly simulate?: string
  readonly stream?: boolean
  readonly leaves?: boolean
}

async function call(key: string, by: string, how: Call = {}): Promise<Made> {
  const { model = 'claude-haiku-5-5', simulate = 'tokens=3', stream = false } = how
  const chat = model.startsWith('gpt')
  const response = await fetch(tollgate.url + (chat ? '/v1/chat/completions' : '/v1/messages'), {
    method: 'POST',
    headers: {
      ...(chat
        ? { authorization: `Bearer ${key}` }
        : { 'x-api-key': key, 'anthropic-version': '2023-06-01' }),
      'user-agent': by,
      'x-simulator': simulate,
    },
    body: JSON.stringify({
      model,
      stream,
      messages: hello.messages,
      ...(chat ? { max_completion_tokens: 9 } : { max_tokens: 9 }),
    }),
  })
  if (how.leaves === true) await response.body?.cancel()
  else await response.arrayBuffer()
  return { id: String(response.headers.get('x-svc-request-id')), by }
}

const nanosOf = (usd: unknown): bigint => BigInt(Math.round(Number(usd) * 1e9))
const sumOf = (calls: readonly Record<string, unknown>[]): bigint =>
  calls.reduce((sum, each) => sum + nanosOf(each['cost_usd']), 0n)

test('the runbook for a leaked key works verbatim', async () => {
  await manage('POST', '/gateway/v1/credits', { amount_usd: 50, reason: 'prepaid' })
  const leaked = await manage('POST', '/v1/keys', { name: 'checkout, production', ...LIMITS })
  const bystander = await manage('POST', '/v1/keys', { name: `not ${leaked['prefix']}` })
  const [key, otherKey] = [String(leaked['key']), String(bystander['key'])]
  assert.equal(leaked['log_requests'], false)

  const made: Made[] = []
  for (const model of MODELS) {
    for (const stream of [false, true]) {
      made.push(await call(key, HOLDER, { model, stream }))
      made.push(await call(key, THIEF, { model, stream, simulate: 'tokens=9' }))
      await call(otherKey, THIEF, { model, stream })
    }
  }
  made.push(await call(key, HOLDER, { simulate: 'status=429' }))
  made.push(await call(key, THIEF, { simulate: 'status=500' }))
  made.push(await call(key, THIEF, { stream: true, leaves: true, simulate: 'tokens=9; drip=50' }))
  const records: Record<string, unknown>[] = []
  for (const { id, by } of made) {
    // The lookup waits until the call has settled.
    records.push({ ...(await manage('GET', `/gateway/v1/requests/${id}`)), by })
  }
  const stolen = records.filter((each) => each['by'] === THIEF && nanosOf(each['cost_usd']) > 0n)
  assert.equal(stolen.length, 7)
  const before = await manage('GET', '/gateway/v1/balance')

  const cwd = dirname(tollgate.dataDir)
  const prefix = String(leaked['prefix'])
  const { stdout } = await execute(
    'bash',
    ['-euo', 'pipefail', '-c', blocks.map(({ text }) => text).join('\n')],
    {
      cwd,
      env: {
        PATH: [curl.folder, commands, dirname(process.execPath), '/usr/bin', '/bin'].join(':'),
        TOLLGATE_URL: tollgate.url,
        TOLLGATE_ADMIN_KEY: adminKey,
        // The owner's copy of the prefix has a few characters more than the stored one.
        PREFIX: key.slice(0, 20),
        OWN: ' checkout/2\\.',
      },
    },
  )
  const fileOf = (name: string) => join(cwd, `leak-${prefix}`, name)
  const linesOf = (name: string) => readFileSync(fileOf(name), 'utf8').trimEnd().split('\n')

  assert.equal((await manage('GET', `/v1/keys/${leaked['id']}`))['status'], 'revoked')
  assert.equal((await manage('GET', `/v1/keys/${bystander['id']}`))['status'], 'usable')
  assert.match(stdout, new RegExp(`^${leaked['id']}\n${leaked['id']} revoked 20`))

  const exported = linesOf('requests.ndjson').map((line) => (JSON.parse(line) as { id: string }).id)
  assert.deepEqual(exported.toSorted(), records.map((each) => String(each['id'])).sort())
  assert.equal(linesOf('requests.csv').length, records.length + 1)
  assert.match(stdout, new RegExp(`^${records.length} calls, 0 in flight$`, 'm'))
  const sources = stdout.split('\n').filter((line) => line.startsWith('{ name: '))
  assert.equal(sources.length, 2)
  assert.ok(sources.some((line) => line.includes(`calls: ${records.length - 7},`)))
  assert.equal(existsSync(fileOf('pwned')), false)
  assert.equal((statSync(fileOf('requests.ndjson')).mode & 0o777).toString(8), '600')

  assert.deepEqual(linesOf('fraud.ids').toSorted(), stolen.map((each) => String(each['id'])).sort())
  const lostNanos = sumOf(stolen)
  const credited = /^Credited \$([\d.]+) for ([\d,]+) calls\./m.exec(stdout)
  assert.deepEqual(
    [nanosOf(credited?.[1]), Number(credited?.[2]?.replace(',', ''))],
    [lostNanos, stolen.length],
  )

  const row =
    stdout.split('\n').find((line) => line.startsWith(`${leaked['id']}  checkout, production `)) ?? ''
  const [list, back] = row.split(/ +/).slice(-2)
  assert.deepEqual([nanosOf(list), nanosOf(back)], [sumOf(records), lostNanos])
  const balance = await manage('GET', '/gateway/v1/balance')
  assert.equal(nanosOf(balance['balance_usd']), nanosOf(before['balance_usd']) + lostNanos)
  assert.equal(balance['charged_usd'], before['charged_usd'])
  assert.match(stdout, new RegExp(`^balance_usd +${balance['balance_usd']}$`, 'm'))

  const fresh = JSON.parse(readFileSync(fileOf('new-key.json'), 'utf8')) as Record<string, unknown>
  for (const [field, value] of Object.entries({ name: 'checkout, production', ...LIMITS })) {
    assert.deepEqual(fresh[field], value)
  }
  const works = await call(String(fresh['key']), HOLDER)
  assert.equal((await manage('GET', `/gateway/v1/requests/${works.id}`))['state'], 'settled')
  assert.doesNotMatch(stdout, /svc_live_\w{20}|svc_admin/, 'no secret is printed')

  const audit = await runTollgate(['audit'], tollgate.environment)
  assert.equal(audit.code, 0, audit.stdout)
  assert.match(audit.stdout, /^No difference/)
})
