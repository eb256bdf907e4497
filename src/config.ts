import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { ConfigError } from './kernel/errors.ts'
import { DEFAULT_THRESHOLDS, limits } from './kernel/limits.ts'
import { LOG_LEVELS, type LogLevel } from './kernel/log-level.ts'
import { NANOS_PER_USD, type Nanos, parseUsd } from './kernel/money.ts'
import { Secret } from './kernel/secret.ts'
import {
  listOf,
  nearestName,
  numberFrom,
  oneOf,
  orNone,
  type SettingReader,
  type SettingsOf,
  section,
  settingsByName,
  textLike,
  wholeNumberFrom,
  yesOrNo,
} from './kernel/settings.ts'

/**
 * Configuration is read once, here, from environment variables (scalars and secrets) and an optional JSON file
 * (the rest); the environment wins. Unknown names are refused in both, because a typo must not weaken a limit,
 * and all problems are reported together. Nothing else in the project reads the environment.
 */

export interface UpstreamConfig {
  /** The base URL that the surface's SDK would use. */
  readonly url: URL
  /** The API key that pays upstream. Null for local model servers that ask for none. */
  readonly key: Secret | null
}

/** Which calls are traced, as `OTEL_TRACES_SAMPLER` and its argument say. The exporter reads its variables itself. */
export interface TraceConfig {
  readonly sampler: (typeof SAMPLERS)[number]
  /** The sampled part of the traces that begin here, for the samplers that take a ratio. */
  readonly ratio: number
}

const SAMPLERS = [
  ...(['always_on', 'always_off', 'traceidratio'] as const),
  ...(['parentbased_always_on', 'parentbased_always_off', 'parentbased_traceidratio'] as const),
] as const

export interface Config {
  readonly host: string
  readonly port: number
  readonly dataDir: string
  /** PostgreSQL for the books, shared by any number of nodes; null for SQLite in the data directory. */
  readonly databaseUrl: Secret | null
  readonly adminKey: Secret | null
  readonly pepper: Secret | null
  readonly prefix: string
  readonly logLevel: LogLevel
  /** Files in PEM format, whose content `readCertificate` checks; null: plain HTTP is spoken. */
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null
  /** `null` on both: the built-in simulator is upstream. `null` on one: that surface answers 503. */
  readonly messages: UpstreamConfig | null
  readonly chat: UpstreamConfig | null
  readonly stateful: 'pass' | 'refuse'
  /** Whether endpoints that hand out upstream credentials are served. */
  readonly minting: 'pass' | 'refuse'
  /** The text of the price overlay file, or null without one. */
  readonly prices: { readonly file: string; readonly text: string } | null
  /** Discounts off list prices, as decimal fractions: one for all models, and more specific ones by pattern. */
  readonly discount: string
  readonly discounts: Readonly<Record<string, string>>
  readonly unpriced: 'auto' | 'refuse' | 'pass'
  readonly injectUsage: boolean
  /** Whether a call whose client left is cancelled upstream or read to its end. */
  readonly onLeave: 'cancel' | 'finish'
  /** The service tier of the upstream project, for requests that name none. */
  readonly chatDefaultTier: string | null
  readonly budgetMode: 'exact' | 'settled'
  /** How long a call waits for room under a cap or for credit. */
  readonly budgetWaitMs: number
  /** How long logged bodies are kept. */
  readonly retentionDays: number
  /** The most bytes that all logged bodies may take together. */
  readonly bodiesBytesMax: number
  readonly drainMs: number
  readonly bodyIdleTimeoutMs: number
  readonly bodyBytesPerSecondMin: number
  readonly callsInFlightPerKeyMax: number
  /** 0: there is no limit. */
  readonly connectionsPerAddressMax: number
  /** Addresses and CIDR ranges whose `X-Forwarded-For` names the client. */
  readonly trustedProxies: readonly string[]
  /** Whether upstream is asked for batches, background responses and the like, whose cost is told later. */
  readonly deferredPoll: boolean
  /** Whether the `results_url` of Message batches is pointed at this gateway. */
  readonly rewriteResultsUrl: boolean
  /** Whether answers carry the balance of the account. */
  readonly showBalance: boolean
  /** Whether `/metrics` is shown without a key. */
  readonly metricsPublic: boolean
  /** Null: no traces are sent. */
  readonly traces: TraceConfig | null
  /** Whether webhooks may go to private addresses, and over plain HTTP. */
  readonly webhooksAllowPrivate: boolean
  /** The balance from which on `balance.low` is told; null never tells it. */
  readonly balanceLowNanos: Nanos | null
  /** Per cent of a cap at which `key.budget.threshold` is told, ascending. */
  readonly budgetThresholdsPercent: readonly number[]
  /** The URL at which people open the dashboard, for links in messages. */
  readonly dashboardUrl: URL | null
}

export { ConfigError }

export type Environment = Readonly<Record<string, string | undefined>>

const anyText = textLike(/^/, '')

const port: SettingReader<number> = (text, name, tell) => {
  if (/^\d{1,5}$/.test(String(text)) && Number(text) <= 65_535) return Number(text)
  tell(name, 'must be a port number from 0 to 65535')
  return undefined
}

const httpUrl =
  (hint: string): SettingReader<URL> =>
  (text, name, tell) => {
    const url = URL.parse(String(text))
    if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
      tell(name, 'must be an absolute http:// or https:// URL')
      return undefined
    }
    if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
      tell(name, `must have no user, password, query or fragment${hint}`)
      return undefined
    }
    return url
  }

const upstreamUrl = httpUrl('; the key has its own variable')

/** A secret, because a password may be part of it. */
const postgresUrl: SettingReader<Secret> = (text, name, tell) => {
  const url = URL.parse(String(text))
  if (url !== null && /^postgres(?:ql)?:$/.test(url.protocol) && url.hostname !== '')
    return new Secret(String(text))
  tell(name, 'must be a URL such as postgres://user:password@host:5432/tollgate')
  return undefined
}

const secret =
  (charsMin: number): SettingReader<Secret> =>
  (given, name, tell) => {
    const text = String(given)
    const isLong = text.length >= charsMin
    const isPlain = /^[\x21-\x7e]+$/.test(text)
    if (!isLong) tell(name, `must have at least ${charsMin} characters`)
    if (!isPlain) tell(name, 'must be printable ASCII without blanks')
    return isLong && isPlain ? new Secret(text) : undefined
  }

const fraction = textLike(
  /^(?:0(?:\.\d{1,9})?|1(?:\.0{1,9})?)$/,
  'must be a fraction from 0 to 1 with at most 9 decimals, such as 0.15',
)

/** The variables that belong to us, each with its reader. A name outside this table is refused. */
const variables = {
  TOLLGATE_HOST: anyText,
  TOLLGATE_PORT: port,
  TOLLGATE_DATA_DIR: anyText,
  TOLLGATE_DATABASE_URL: postgresUrl,
  TOLLGATE_CONFIG: anyText,
  TOLLGATE_ADMIN_KEY: secret(32),
  TOLLGATE_MESSAGES_URL: upstreamUrl,
  TOLLGATE_MESSAGES_KEY: secret(1),
  TOLLGATE_CHAT_URL: upstreamUrl,
  TOLLGATE_CHAT_KEY: secret(1),
  TOLLGATE_PEPPER: secret(16),
  TOLLGATE_DISCOUNT: fraction,
  TOLLGATE_PRICES: anyText,
  TOLLGATE_PREFIX: textLike(
    /^[a-z][a-z0-9]{0,15}$/,
    'must be 1 to 16 lower-case letters and digits, beginning with a letter',
  ),
  TOLLGATE_TLS_CERT: anyText,
  TOLLGATE_TLS_KEY: anyText,
  TOLLGATE_LOG_LEVEL: oneOf(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`),
} as const

/** The providers' own variables, used when ours are not set. */
const fallbackVariables = { ANTHROPIC_API_KEY: secret(1), OPENAI_API_KEY: secret(1) } as const

/** OpenTelemetry's own variables, which other programs of a host may share. Its packages read the others themselves. */
const traceVariables = {
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl(''),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: httpUrl(''),
  OTEL_TRACES_SAMPLER: oneOf(SAMPLERS, `must be one of ${SAMPLERS.join(', ')}`),
  OTEL_TRACES_SAMPLER_ARG: fraction,
} as const

/** An address or a range of addresses. A zone (`%eth0`) is refused: addresses of connections are compared without it. */
const addresses: SettingReader<string> = (given, name, tell) => {
  const [, address = '', bits = '0'] = /^([0-9a-fA-F.:]+)(?:\/(\d{1,3}))?$/.exec(String(given)) ?? []
  const family = isIP(address)
  if (family !== 0 && Number(bits) <= (family === 4 ? 32 : 128)) return String(given)
  tell(name, 'must be an address or a range such as 10.0.0.0/8 or fd00::/8')
  return undefined
}

/** An amount as the management API takes it. An amount with more than nine decimals is refused, not rounded. */
const usdAmount: SettingReader<Nanos> = (given, name, tell) => {
  const text = typeof given === 'number' ? given.toFixed(9) : ''
  const nanos = Number(text) === given ? parseUsd(text) : null
  if (nanos !== null && nanos >= 0n && nanos <= 1_000_000_000n * NANOS_PER_USD) return nanos
  tell(name, 'must be a number of US dollars from 0 to 1000000000 with at most 9 decimals')
  return undefined
}

/** Thresholds may be in any order, none of them twice. 100 is told as `key.budget.exceeded`. */
const thresholds: SettingReader<readonly number[]> = (given, name, tell) => {
  const percents = listOf(wholeNumberFrom(1, 99))(given, name, tell)
  if (percents === undefined) return undefined
  if (percents.length > limits.budgetThresholdsMax)
    tell(name, `must have at most ${limits.budgetThresholdsMax} entries`)
  if (new Set(percents).size !== percents.length) tell(name, 'must not name a percentage twice')
  return percents.toSorted((a, b) => a - b)
}

const settings = section({
  pricing: section({
    unpriced: oneOf(['auto', 'refuse', 'pass'], 'must be "auto", "refuse" or "pass"'),
    discounts: settingsByName(fraction),
  }),
  chat: section({
    inject_usage: yesOrNo,
    default_tier: oneOf(['default', 'flex', 'priority', 'ultrafast']),
  }),
  budgets: section({
    mode: oneOf(['exact', 'settled'], 'must be "exact" or "settled"'),
    wait_seconds: numberFrom(0, 600),
  }),
  streams: section({ on_leave: oneOf(['cancel', 'finish'], 'must be "cancel" or "finish"') }),
  stateful: oneOf(['pass', 'refuse'], 'must be "pass" or "refuse"'),
  minting: oneOf(['pass', 'refuse'], 'must be "pass" or "refuse"'),
  shutdown: section({ drain_seconds: numberFrom(0, 3_600) }),
  requests: section({
    body_idle_seconds: numberFrom(0.1, 3_600),
    body_bytes_per_second_min: orNone(wholeNumberFrom(0, 1_000_000)),
    retention_days: wholeNumberFrom(1, 3_650),
    bodies_bytes_max: wholeNumberFrom(0, Number.MAX_SAFE_INTEGER),
  }),
  limits: section({
    calls_in_flight_per_key: wholeNumberFrom(1, 1_000_000),
    connections_per_address: orNone(wholeNumberFrom(0, 1_000_000)),
  }),
  trusted_proxies: listOf(addresses),
  headers: section({ balance: yesOrNo }),
  metrics: section({ public: yesOrNo }),
  deferred: section({ poll: yesOrNo, rewrite_results_url: yesOrNo }),
  webhooks: section({
    allow_private: yesOrNo,
    balance_low_usd: usdAmount,
    thresholds_percent: thresholds,
  }),
  dashboard_url: httpUrl(''),
})

type Settings = NonNullable<ReturnType<typeof settings>>

export function readConfig(environment: Environment, workingDir = process.cwd()): Config {
  const problems: string[] = []
  const env = readVariables(environment, variables, problems)
  const fallback = readVariables(environment, fallbackVariables, problems)
  const traces = readTraces(environment, problems)
  refuseUnknownVariables(environment, problems)
  const file = readFile(environment, workingDir, problems)
  const tls = tlsFiles(env.TOLLGATE_TLS_CERT, env.TOLLGATE_TLS_KEY, workingDir, problems)
  const prices = readPrices(env.TOLLGATE_PRICES, workingDir, problems)
  if (problems.length > 0) throw new ConfigError(problems)

  return {
    host: env.TOLLGATE_HOST ?? '127.0.0.1',
    port: env.TOLLGATE_PORT ?? 8787,
    dataDir: resolve(workingDir, env.TOLLGATE_DATA_DIR ?? 'data'),
    databaseUrl: env.TOLLGATE_DATABASE_URL ?? null,
    adminKey: env.TOLLGATE_ADMIN_KEY ?? null,
    pepper: env.TOLLGATE_PEPPER ?? null,
    prefix: env.TOLLGATE_PREFIX ?? 'svc',
    logLevel: env.TOLLGATE_LOG_LEVEL ?? 'info',
    tls,
    messages: upstream(
      env.TOLLGATE_MESSAGES_URL,
      env.TOLLGATE_MESSAGES_KEY ?? fallback.ANTHROPIC_API_KEY,
      'https://api.anthropic.com',
    ),
    chat: upstream(
      env.TOLLGATE_CHAT_URL,
      env.TOLLGATE_CHAT_KEY ?? fallback.OPENAI_API_KEY,
      'https://api.openai.com/v1',
    ),
    stateful: file.stateful ?? 'pass',
    minting: file.minting ?? 'refuse',
    prices,
    discount: env.TOLLGATE_DISCOUNT ?? '0',
    discounts: file.pricing?.discounts ?? {},
    unpriced: file.pricing?.unpriced ?? 'auto',
    injectUsage: file.chat?.inject_usage ?? true,
    onLeave: file.streams?.on_leave ?? 'cancel',
    chatDefaultTier: file.chat?.default_tier ?? null,
    budgetMode: file.budgets?.mode ?? 'exact',
    budgetWaitMs: seconds(file.budgets?.wait_seconds) ?? limits.budgetWaitMs,
    retentionDays: file.requests?.retention_days ?? 30,
    bodiesBytesMax: file.requests?.bodies_bytes_max ?? limits.loggedBodiesBytesMax,
    drainMs: seconds(file.shutdown?.drain_seconds) ?? limits.drainMs,
    bodyIdleTimeoutMs: seconds(file.requests?.body_idle_seconds) ?? limits.bodyIdleTimeoutMs,
    bodyBytesPerSecondMin: file.requests?.body_bytes_per_second_min ?? limits.bodyBytesPerSecondMin,
    callsInFlightPerKeyMax: file.limits?.calls_in_flight_per_key ?? limits.callsInFlightPerKeyMax,
    connectionsPerAddressMax: file.limits?.connections_per_address ?? limits.connectionsPerAddressMax,
    trustedProxies: file.trusted_proxies ?? [],
    showBalance: file.headers?.balance ?? true,
    metricsPublic: file.metrics?.public ?? false,
    deferredPoll: file.deferred?.poll ?? true,
    rewriteResultsUrl: file.deferred?.rewrite_results_url ?? false,
    traces,
    webhooksAllowPrivate: file.webhooks?.allow_private ?? false,
    balanceLowNanos: file.webhooks?.balance_low_usd ?? null,
    budgetThresholdsPercent: file.webhooks?.thresholds_percent ?? DEFAULT_THRESHOLDS,
    dashboardUrl: file.dashboard_url ?? null,
  }
}

/** Where no traces are sent, OpenTelemetry's variables are not checked: they may be meant for other programs. */
function readTraces(environment: Environment, problems: string[]): TraceConfig | null {
  const isSet = (name: string) => (environment[name] ?? '') !== ''
  if (!isSet('OTEL_EXPORTER_OTLP_ENDPOINT') && !isSet('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT')) return null
  if (environment['OTEL_SDK_DISABLED']?.toLowerCase() === 'true') return null
  if (environment['OTEL_TRACES_EXPORTER'] === 'none') return null
  const otel = readVariables(environment, traceVariables, problems)
  const ratio = Number(otel.OTEL_TRACES_SAMPLER_ARG ?? 1)
  return { sampler: otel.OTEL_TRACES_SAMPLER ?? 'parentbased_always_on', ratio }
}

function upstream(url: URL | undefined, key: Secret | undefined, defaultUrl: string): UpstreamConfig | null {
  if (url === undefined && key === undefined) return null
  return { url: url ?? new URL(defaultUrl), key: key ?? null }
}

function tlsFiles(
  cert: string | undefined,
  key: string | undefined,
  workingDir: string,
  problems: string[],
): Config['tls'] {
  if (cert !== undefined && key !== undefined)
    return { certFile: resolve(workingDir, cert), keyFile: resolve(workingDir, key) }
  if (cert !== undefined)
    problems.push(
      'TOLLGATE_TLS_KEY is missing: name the file with the key of TOLLGATE_TLS_CERT, or unset both',
    )
  if (key !== undefined)
    problems.push(
      'TOLLGATE_TLS_CERT is missing: name the file with the certificate of TOLLGATE_TLS_KEY, or unset both',
    )
  return null
}

function readPrices(path: string | undefined, workingDir: string, problems: string[]): Config['prices'] {
  if (path === undefined) return null
  const file = resolve(workingDir, path)
  try {
    return { file, text: readFileSync(file, 'utf8') }
  } catch (error) {
    problems.push(`TOLLGATE_PRICES: ${file} cannot be read: ${(error as Error).message}`)
    return null
  }
}

function seconds(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.round(value * 1_000)
}

function readVariables<Readers extends Readonly<Record<string, SettingReader<unknown>>>>(
  environment: Environment,
  readers: Readers,
  problems: string[],
): SettingsOf<Readers> {
  const values: Record<string, unknown> = {}
  for (const [name, reader] of Object.entries(readers)) {
    const text = environment[name]
    // An empty variable is what `NAME= command` and unset secrets in compose files give: it means "not set".
    if (text === undefined || text === '') continue
    values[name] = reader(text, name, (_, problem) => problems.push(`${name} ${problem}`))
  }
  return values as SettingsOf<Readers>
}

/** Variables that the documentation has clients export. The gateway reads neither, and may be started from the same shell. */
export const CLIENT_VARIABLES: readonly string[] = ['TOLLGATE_URL', 'TOLLGATE_KEY']

function refuseUnknownVariables(environment: Environment, problems: string[]): void {
  const known = Object.keys(variables)
  for (const name of Object.keys(environment)) {
    if (!name.startsWith('TOLLGATE_') || known.includes(name) || CLIENT_VARIABLES.includes(name)) continue
    problems.push(
      `${name} is not a variable of Tollgate${suggestion(name, known)}; the names are in the README`,
    )
  }
}

/** The configuration file that the environment names. It need not exist. */
export function configFile(environment: Environment, workingDir = process.cwd()): string {
  return resolve(workingDir, environment['TOLLGATE_CONFIG'] || 'tollgate.json')
}

function readFile(environment: Environment, workingDir: string, problems: string[]): Settings {
  const path = environment['TOLLGATE_CONFIG'] || undefined
  const file = configFile(environment, workingDir)
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    const missing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    if (path !== undefined || !missing) problems.push(`${file} cannot be read: ${(error as Error).message}`)
    return {}
  }
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (error) {
    problems.push(`${file} is not JSON: ${(error as Error).message}`)
    return {}
  }
  return settings(json, '', (name, problem) => problems.push(`${file}: "${name}" ${problem}`)) ?? {}
}

function suggestion(name: string, known: readonly string[]): string {
  const close = nearestName(name, known, 3)
  return close === null ? '' : ` (did you mean ${close}?)`
}
