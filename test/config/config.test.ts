import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigError, type Environment, readConfig } from '../../src/config/read-config.ts'
import { after, test } from '../support/suite.ts'

const emptyDir = mkdtempSync(join(tmpdir(), 'tollgate-config-'))
after(() => rmSync(emptyDir, { recursive: true }))

const read = (environment: Environment) => readConfig(environment, emptyDir)

function problemsOf(environment: Environment): readonly string[] {
  try {
    read(environment)
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    return error.problems
  }
  throw new assert.AssertionError({ message: 'the configuration was accepted' })
}

function withFile<T>(text: string, work: (environment: Environment) => T): T {
  const file = join(emptyDir, 'settings.json')
  writeFileSync(file, text)
  return work({ TOLLGATE_CONFIG: file })
}

test('an empty environment gives the defaults and no upstream', () => {
  const config = read({})
  assert.equal(config.host, '127.0.0.1')
  assert.equal(config.port, 8787)
  assert.equal(config.dataDir, join(emptyDir, 'data'))
  assert.equal(config.prefix, 'svc')
  assert.equal(config.messages, null)
  assert.equal(config.chat, null)
  assert.equal(config.stateful, 'pass')
  assert.equal(config.minting, 'refuse')
  assert.equal(config.bodiesBytesMax, 10 * 1024 ** 3)
})

test('a provider key alone configures the surface at its default URL', () => {
  const config = read({ ANTHROPIC_API_KEY: 'sk-ant-x' })
  assert.equal(config.messages?.url.href, 'https://api.anthropic.com/')
  assert.equal(config.messages?.key?.reveal(), 'sk-ant-x')
  assert.equal(config.chat, null)
})

test("our own variable takes precedence over the provider's", () => {
  const config = read({ TOLLGATE_CHAT_KEY: 'ours', OPENAI_API_KEY: 'theirs' })
  assert.equal(config.chat?.key?.reveal(), 'ours')
})

test('a URL without a key sends no credential, as for a local model server', () => {
  const config = read({ TOLLGATE_CHAT_URL: 'http://127.0.0.1:11434/v1' })
  assert.equal(config.chat?.key, null)
})

test('the proxy of https URLs is read in either case, with its credential', () => {
  const egress = (environment: Environment) => {
    const { proxy, direct } = read(environment).egress
    return [proxy && `${proxy.host}:${proxy.port} ${proxy.authorization?.reveal() ?? ''}`, ...direct]
  }
  assert.deepEqual(egress({}), [null])
  assert.deepEqual(egress({ HTTPS_PROXY: 'http://p.test:3128', NO_PROXY: 'a.test, .b.test  *.c' }), [
    ...['p.test:3128 ', 'a.test', '.b.test', '*.c'],
  ])
  assert.deepEqual(egress({ https_proxy: 'p.test:3128', HTTPS_PROXY: 'http://other' }), ['p.test:3128 '])
  assert.deepEqual(egress({ HTTPS_PROXY: 'http://u:p%40ss@[fd00::1]' }), ['fd00::1:80 Basic dTpwQHNz'])
  for (const HTTPS_PROXY of ['socks5://p.test', 'https://p.test', 'http://', 'a b'])
    assert.match(problemsOf({ HTTPS_PROXY })[0] ?? '', /^HTTPS_PROXY must be a URL such as /)
})

test('fixed headers are lines of the surface; names that are not fixed are refused without their values', () => {
  const file = '{"messages": {"headers": {"Anthropic-Workspace-Id": "w", "x-a": "b"}}}'
  const config = withFile(file, (env) => read({ ...env, TOLLGATE_MESSAGES_KEY: 'k', TOLLGATE_CHAT_KEY: 'k' }))
  assert.deepEqual(config.messages?.fixedHeaders, ['Anthropic-Workspace-Id', 'w', 'x-a', 'b'])
  assert.deepEqual(config.chat?.fixedHeaders, [])
  for (const name of [
    ...['host', 'Content-Type', 'content-length', 'accept-encoding', 'Idempotency-Key', 'authorization'],
    ...['x-api-key', 'api-key', 'cookie', 'proxy-authorization', 'connection', 'te', 'a b', ''],
  ]) {
    const [problem = ''] = withFile(`{"chat": {"headers": {"${name}": "hidden"}}}`, problemsOf)
    assert.match(problem, /is not the name of a header that can be fixed/, name)
    assert.ok(!problem.includes('hidden'))
  }
  const [problem] = withFile('{"chat": {"headers": {"x-a": "hidden\\r\\nx: y"}}}', problemsOf)
  assert.match(problem ?? '', /"chat.headers.x-a" must be printable ASCII, not this text$/)
})

test('a shared port needs PostgreSQL and a port for metrics', () => {
  const shared = { TOLLGATE_REUSE_PORT: 'true' }
  assert.match(problemsOf(shared)[0] ?? '', /needs PostgreSQL/)
  const database = { ...shared, TOLLGATE_DATABASE_URL: 'postgres://h/d' }
  assert.match(problemsOf(database)[0] ?? '', /needs "metrics.port"/)
  const config = withFile('{"metrics": {"port": 9101}}', (env) => read({ ...env, ...database }))
  assert.equal(config.reusePort, true)
})

test('an empty variable counts as unset', () => {
  assert.equal(read({ TOLLGATE_PORT: '', OPENAI_API_KEY: '' }).chat, null)
})

const bad: readonly [name: string, value: string, message: RegExp][] = [
  ['TOLLGATE_PORT', '80a', /^TOLLGATE_PORT must be a port number from 0 to 65535$/],
  ['TOLLGATE_PORT', '70000', /^TOLLGATE_PORT must be a port number/],
  ['TOLLGATE_ADMIN_KEY', 'short', /^TOLLGATE_ADMIN_KEY must have at least 32 characters$/],
  [
    'TOLLGATE_ADMIN_KEY',
    `${'x'.repeat(40)} y`,
    /^TOLLGATE_ADMIN_KEY must be printable ASCII without spaces$/,
  ],
  ['TOLLGATE_PEPPER', 'short', /^TOLLGATE_PEPPER must have at least 16 characters$/],
  ['TOLLGATE_PREFIX', 'No-Good', /^TOLLGATE_PREFIX must be 1 to 16 lower-case letters and digits/],
  ['TOLLGATE_LOG_LEVEL', 'loud', /^TOLLGATE_LOG_LEVEL must be one of silent/],
  ['TOLLGATE_MESSAGES_URL', 'api.anthropic.com', /^TOLLGATE_MESSAGES_URL must be an absolute http/],
  ['TOLLGATE_CHAT_URL', 'ftp://x/', /^TOLLGATE_CHAT_URL must be an absolute http/],
  ['TOLLGATE_CHAT_URL', 'https://u:p@x/v1', /^TOLLGATE_CHAT_URL must have no user, password/],
  ['TOLLGATE_CHAT_KEY', 'a\nb', /^TOLLGATE_CHAT_KEY must be printable ASCII/],
  ['TOLLGATE_DISCOUNT', '1.5', /^TOLLGATE_DISCOUNT must be a fraction from 0 to 1/],
  ['TOLLGATE_DATABASE_URL', 'mysql://x/y', /^TOLLGATE_DATABASE_URL must be a URL such as postgres:/],
  ['TOLLGATE_HOTS', '::', /^TOLLGATE_HOTS is not a variable of Tollgate \(did you mean TOLLGATE_HOST\?\)/],
  ['TOLLGATE_NONSENSE', '1', /^TOLLGATE_NONSENSE is not a variable of Tollgate;/],
]
for (const [name, value, message] of bad) {
  test(`${name}=${JSON.stringify(value).slice(0, 24)} is refused with its name and the fix`, () => {
    const problems = problemsOf({ [name]: value })
    assert.equal(problems.length, 1)
    assert.match(problems[0] ?? '', message)
    if (name.endsWith('_KEY')) assert.ok(!problems[0]?.includes(value), 'a secret is not repeated')
  })
}

test('all problems are reported together', () => {
  const files = { TOLLGATE_TLS_CERT: 'cert.pem', TOLLGATE_PRICES: 'nowhere.json', TOLLGATE_CONFIG: 'nowhere' }
  const problems = problemsOf({ TOLLGATE_PORT: 'x', TOLLGATE_PREFIX: '9', TOLLGATE_TYPO: '1', ...files })
  const names = problems.map((problem) => /^TOLLGATE_[A-Z_]+/.exec(problem)?.[0])
  assert.deepEqual(names.toSorted(), [
    ...[
      'TOLLGATE_CONFIG',
      'TOLLGATE_PORT',
      'TOLLGATE_PREFIX',
      'TOLLGATE_PRICES',
      'TOLLGATE_TLS_KEY',
      'TOLLGATE_TYPO',
    ],
  ])
})

test('the file sets what no variable sets', () => {
  const config = withFile('{"stateful":"refuse","minting":"pass","shutdown":{"drain_seconds":1.5}}', read)
  assert.equal(config.stateful, 'refuse')
  assert.equal(config.minting, 'pass')
  assert.equal(config.drainMs, 1_500)
})

test('tollgate.json in the working directory is read by default', () => {
  const dir = mkdtempSync(join(tmpdir(), 'tollgate-config-'))
  writeFileSync(join(dir, 'tollgate.json'), '{"stateful":"refuse"}')
  assert.equal(readConfig({}, dir).stateful, 'refuse')
  rmSync(dir, { recursive: true })
})

test('an unknown or misspelt setting is refused by its full name', () => {
  const [problem = ''] = withFile('{"shutdown":{"drain_secs":1}}', problemsOf)
  assert.match(
    problem,
    /"shutdown\.drain_secs" is not a setting \(did you mean "shutdown\.drain_seconds"\?\)$/,
  )
  assert.match(
    withFile('{"pricng":{}}', problemsOf)[0] ?? '',
    /"pricng" is not a setting \(did you mean "pricing"\?\)$/,
  )
})

test('a setting out of bounds is refused', () => {
  const [problem = ''] = withFile('{"shutdown":{"drain_seconds":-1}}', problemsOf)
  assert.match(problem, /"shutdown\.drain_seconds" must be a number from 0 to 3600, not -1$/)
})

test('discounts are numbers or decimal text, and all invalid ones are refused by name', () => {
  const withDiscounts = (discounts: object) => JSON.stringify({ pricing: { discounts } })
  const config = withFile(withDiscounts({ 'gpt-*': 0.1, o1: '0.25', '*': 0 }), read)
  assert.deepEqual(config.discounts, { 'gpt-*': '0.1', o1: '0.25', '*': '0' })
  const wrong = { 'gpt-*': -0.1, 'o3 ': '0.1', o1: '0.1234567890', '*-mini': 0.1, o4: 1.5, 'claude-*': true }
  const problems = withFile(withDiscounts(wrong), problemsOf)
  assert.equal(problems.length, 6)
  for (const [i, name] of Object.keys(wrong).entries())
    assert.ok(problems[i]?.includes(`discounts.${name}" `))
  assert.match(problems[3] ?? '', /is not a model or a pattern that ends in "\*"$/)
})

test('a file that is not an object, or is named but missing, is refused', () => {
  assert.match(withFile('{', problemsOf)[0] ?? '', /is not JSON/)
  assert.match(withFile('[]', problemsOf)[0] ?? '', /settings\.json: must be an object, not this list$/)
  assert.match(problemsOf({ TOLLGATE_CONFIG: join(emptyDir, 'nowhere.json') })[0] ?? '', /cannot be read/)
})

test('an invalid proxy address is refused with its position in the list', () => {
  const list = [
    '10.0.0.0/33',
    'fd00::/129',
    '10.0.0.0/8/8',
    'proxy.internal',
    '',
    'fe80::1%eth0',
    7,
    '10.0/8',
  ]
  const problems = withFile(JSON.stringify({ trusted_proxies: ['10.0.0.1', ...list] }), problemsOf)
  assert.equal(problems.length, list.length)
  for (const [i, problem] of problems.entries()) {
    assert.ok(problem.includes(`"trusted_proxies[${i + 1}]" must be an address or a range such as`), problem)
  }
  assert.match(
    withFile('{"trusted_proxies":"10.0.0.1"}', problemsOf)[0] ?? '',
    /must be a list, not this text$/,
  )
  assert.match(
    withFile('{"limits":{"calls_in_flight_per_key":0}}', problemsOf)[0] ?? '',
    /must be a whole number from 1 to 1000000, not 0$/,
  )
})

test('traces are sent if an endpoint is set, sampled as the OpenTelemetry variables say', () => {
  const OTEL_EXPORTER_OTLP_ENDPOINT = 'http://collector:4318'
  assert.equal(read({}).traces, null)
  const batch = {
    scheduledDelayMillis: 5_000,
    exportTimeoutMillis: 30_000,
    maxQueueSize: 2_048,
    maxExportBatchSize: 512,
  }
  const whole = { sampler: 'parentbased_always_on', ratio: 1, batch }
  assert.deepEqual(read({ OTEL_EXPORTER_OTLP_ENDPOINT }).traces, whole)
  assert.deepEqual(read({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://collector/traces' }).traces, whole)
  const part = {
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.25',
    OTEL_BSP_MAX_QUEUE_SIZE: '9',
  }
  const { traces } = read({ OTEL_EXPORTER_OTLP_ENDPOINT, ...part })
  assert.deepEqual(traces, {
    ...{ sampler: 'parentbased_traceidratio', ratio: 0.25 },
    batch: { ...batch, maxQueueSize: 9, maxExportBatchSize: 9 },
  })
  for (const off of [{ OTEL_SDK_DISABLED: 'TRUE' }, { OTEL_TRACES_EXPORTER: 'none' }])
    assert.equal(read({ OTEL_EXPORTER_OTLP_ENDPOINT, ...off }).traces, null)
  // Without an endpoint, OpenTelemetry variables may belong to other programs and are not checked.
  assert.equal(read({ OTEL_TRACES_SAMPLER: 'xray' }).traces, null)
  const [sampler = '', endpoint = ''] = [
    problemsOf({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_SAMPLER: 'xray' })[0],
    problemsOf({ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' })[0],
  ]
  assert.match(sampler, /^OTEL_TRACES_SAMPLER must be one of always_on, /)
  assert.match(endpoint, /^OTEL_EXPORTER_OTLP_ENDPOINT must be an absolute/)
})

test('an invalid or duplicate threshold percentage, and an invalid amount, are refused', () => {
  const problemOf = (json: string) => withFile(json, problemsOf)[0] ?? ''
  assert.match(
    problemOf('{"webhooks":{"thresholds_percent":[50,100]}}'),
    /"webhooks\.thresholds_percent\[1\]" must be a whole number from 1 to 99/,
  )
  assert.match(
    problemOf('{"webhooks":{"thresholds_percent":[0]}}'),
    /must be a whole number from 1 to 99, not 0/,
  )
  assert.match(problemOf('{"webhooks":{"thresholds_percent":[1.5]}}'), /must be a whole number, not 1\.5/)
  assert.match(problemOf('{"webhooks":{"thresholds_percent":[50,50]}}'), /must not name a percentage twice/)
  const many = JSON.stringify(Array.from({ length: 21 }, (_, i) => i + 1))
  assert.match(problemOf(`{"webhooks":{"thresholds_percent":${many}}}`), /must have at most 20 entries/)
  for (const amount of ['-1', '"5"', '1e-10', '1000000001'])
    assert.match(
      problemOf(`{"webhooks":{"balance_low_usd":${amount}}}`),
      /must be a number of US dollars from 0 to/,
    )
  assert.match(problemOf('{"dashboard_url":"/dashboard"}'), /must be an absolute http:\/\/ or https:\/\/ URL/)
  assert.match(
    problemOf('{"dashboard_url":"https://a.example/?x"}'),
    /must have no user, password, query or fragment/,
  )
})

test('variables that client examples export are not reported as misspelt', () => {
  const config = readConfig(
    { TOLLGATE_URL: 'http://127.0.0.1:8787', TOLLGATE_KEY: 'svc_live_x' },
    '/nonexistent',
  )
  assert.equal(config.port, 8787)
})
