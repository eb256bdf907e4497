import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { startGateway } from '../support/gateway.ts'
import { after, test } from '../support/suite.ts'

/** Answers in the shape of LiteLLM's `LiteLLM_TeamTable` and `LiteLLM_VerificationToken`. */
const answers = JSON.parse(readFileSync(new URL('litellm-answers.json', import.meta.url), 'utf8')) as Record<
  string,
  unknown
>

const gateway = await startGateway()
const proxy = createServer(({ url = '', headers }, response) => {
  assert.equal(headers.authorization, 'Bearer sk-master')
  response.end(JSON.stringify(answers[url]))
}).listen(0, '127.0.0.1')
await once(proxy, 'listening')
after(async () => {
  proxy.close()
  await gateway.close()
})

async function runImport(...args: readonly string[]) {
  return await runImportFrom((proxy.address() as AddressInfo).port, ...args)
}

async function runImportFrom(port: number, ...args: readonly string[]) {
  const script = new URL('../../scripts/import-litellm.ts', import.meta.url).pathname
  const env = {
    ...{ LITELLM_URL: `http://127.0.0.1:${port}`, LITELLM_MASTER_KEY: 'sk-master' },
    ...{ TOLLGATE_URL: gateway.url, TOLLGATE_ADMIN_KEY: gateway.adminKey },
  }
  const run = spawn(process.execPath, [script, ...args], { env })
  const [stdout, stderr, [code]] = await Promise.all([text(run.stdout), text(run.stderr), once(run, 'close')])
  return {
    code,
    stderr,
    created: stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)])),
  }
}

const keysOf = async (search: string) =>
  (await gateway.manage('GET', `/v1/keys?account=*&search=${search}`))['data'] as Record<string, unknown>[]

test('a dry run of an import from LiteLLM changes nothing', async () => {
  const { stderr, created } = await runImport('--dry-run')
  assert.match(stderr, /^account \{"name":"Search".*"monthly_budget_usd":500\}$/m)
  assert.match(stderr, /^key \{"name":"ranking"/m)
  assert.match(stderr, /^gemini: NOT CREATED: .* answers 400: .*unknown_model/m)
  assert.deepEqual(created, [])
  assert.deepEqual(await keysOf('ranking'), [])
})

test('virtual keys of LiteLLM become keys with the same limits, and what has no counterpart is said', async () => {
  const { code, stderr, created } = await runImport()
  assert.deepEqual(
    created.map(({ name, was }) => [name, was]),
    [
      ['ranking', 'sk-...KE_A'],
      ['nightly', 'sk-...if_g'],
      ['trial', 'sk-...9xQw'],
    ],
  )
  const [ranking] = await keysOf('ranking')
  const { id, account_id: account, expires_at: expiresAt, metadata } = ranking ?? {}
  assert.deepEqual([id, account, expiresAt], [created[0].id, created[0].account, '2099-06-30T00:00:00.000Z'])
  assert.deepEqual(metadata, {
    litellm_key: '1'.repeat(64),
    litellm_user: 'ada@example.com',
    stage: 'production',
  })
  assert.deepEqual([ranking?.['monthly_budget_usd'], ranking?.['requests_per_minute']], [30, 60])
  assert.match(stderr, /^ranking: its budget of 7 USD for 7d is 30 USD a month now$/m)
  assert.deepEqual(ranking?.['allowed_models'], ['claude-haiku-5-5', 'gpt-6-luna'])
  assert.deepEqual(
    (await gateway.manage('GET', `/gateway/v1/accounts/${account}`))['monthly_budget_usd'],
    500,
  )

  const [nightly] = await keysOf('nightly')
  assert.deepEqual([nightly?.['daily_budget_usd'], nightly?.['allowed_models']], [20, ['gpt-6-luna']])
  assert.match(stderr, /^nightly: tpm_limit has no counterpart$/m)
  const [trial] = await keysOf('trial')
  assert.deepEqual([trial?.['monthly_budget_usd'], trial?.['allowed_models']], [37.75, ['claude-*']])
  assert.match(stderr, /^trial: its budget never resets/m)
  assert.match(stderr, /^left: blocked or expired, left out$/m)
  assert.match(stderr, /^gemini: NOT CREATED: .* answers 400: .*unknown_model/m)
  assert.equal(code, 1)
})

test('a LiteLLM that does not answer is one line', async () => {
  const { code, stderr } = await runImportFrom(1)
  assert.match(
    stderr,
    /^http:\/\/127\.0\.0\.1:1 does not answer \(.+\)\. Start it, or correct LITELLM_URL\.\n$/,
  )
  assert.equal(code, 1)
})

test('a second import creates only what is missing', async () => {
  const { created, stderr } = await runImport()
  assert.deepEqual(created, [])
  assert.match(stderr, /^ranking: is here already$/m)
})
