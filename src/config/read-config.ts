import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import type { EgressRules } from '../http/egress.ts'
import { ConfigError, fileProblem } from '../kernel/errors.ts'
import { nearestName } from '../kernel/nearest-name.ts'
import { Secret } from '../kernel/secret.ts'
import { readSignIn, type SignInConfig } from './read-sign-in.ts'
import {
  FALLBACK_VARIABLES,
  FILE_SETTINGS,
  SECTION_NAMES,
  SETTING_NAMES,
  SETTINGS_SCHEMA,
  TRACE_VARIABLES,
  VARIABLES,
} from './schema.ts'

/**
 * Reads the configuration once, from environment variables (scalars and secrets) and an optional JSON file (the rest);
 * the environment wins. Unknown names are refused in both, because a typo must not weaken a limit. All problems are
 * reported together. Nothing else reads the environment.
 */

export const PROVIDER_URLS = {
  messages: 'https://api.anthropic.com',
  chat: 'https://api.openai.com/v1',
} as const

export interface UpstreamConfig {
  readonly url: URL
  /** The upstream API key. Null for local model servers without keys. */
  readonly key: Secret | null
  /** Lines that every call gets, as name, value, name, value … The values are secrets. */
  readonly fixedHeaders?: readonly string[]
}

export type TraceConfig = NonNullable<ReturnType<typeof readTraces>>

export { ConfigError }

export type Environment = Readonly<Record<string, string | undefined>>

export function readConfig(environment: Environment, workingDir = process.cwd()): Config {
  const problems: string[] = []
  const env = readVariables(environment, VARIABLES, problems)
  const fallback = readVariables(environment, FALLBACK_VARIABLES, problems)
  const traces = readTraces(environment, problems)
  refuseUnknownVariables(environment, problems)
  const egress = readEgress(environment, problems)
  const file = readFile(environment, workingDir, problems)
  const tls = tlsFiles(environment, workingDir, problems)
  const prices = readPrices(environment['TOLLGATE_PRICES'], workingDir, problems)
  if (problems.length > 0 || env === null || fallback === null || file === null)
    throw new ConfigError(problems)
  const dataDir = resolve(workingDir, env.TOLLGATE_DATA_DIR)
  const read = { ...fromVariables(env, fallback), ...fromFile(file) }
  const signIn = readSignIn(read, problems)
  const shared = refuseSharedPort(read)
  if (shared !== null) problems.push(shared)
  if (problems.length > 0) throw new ConfigError(problems)
  const messages = withHeaders(read.messages, read.messagesHeaders)
  const chat = withHeaders(read.chat, read.chatHeaders)
  return { ...read, messages, chat, dataDir, tls, prices, traces, egress, signIn }
}

export type Config = Readonly<ReturnType<typeof fromVariables> & FileSettings> & {
  readonly dataDir: string
  /** PEM files, validated by `readCertificate`. Null: plain HTTP. */
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null
  readonly prices: { readonly file: string; readonly text: string } | null
  readonly traces: TraceConfig | null
  readonly egress: EgressRules
  /** Null: people cannot sign in, only keys. */
  readonly signIn: SignInConfig | null
}

function fromVariables(
  env: z.output<z.ZodObject<typeof VARIABLES>>,
  provider: z.output<z.ZodObject<typeof FALLBACK_VARIABLES>>,
) {
  const messagesKey = env.TOLLGATE_MESSAGES_KEY ?? provider.ANTHROPIC_API_KEY
  const chatKey = env.TOLLGATE_CHAT_KEY ?? provider.OPENAI_API_KEY
  return {
    host: env.TOLLGATE_HOST,
    port: env.TOLLGATE_PORT,
    databaseUrl: env.TOLLGATE_DATABASE_URL ?? null,
    adminKey: env.TOLLGATE_ADMIN_KEY ?? null,
    pepper: env.TOLLGATE_PEPPER ?? null,
    prefix: env.TOLLGATE_PREFIX,
    logLevel: env.TOLLGATE_LOG_LEVEL,
    /** Null: the simulator serves where no upstream is configured and none has ever answered. */
    simulator: env.TOLLGATE_SIMULATOR ?? null,
    reusePort: env.TOLLGATE_REUSE_PORT ?? false,
    messages: upstream(env.TOLLGATE_MESSAGES_URL, messagesKey, PROVIDER_URLS.messages),
    chat: upstream(env.TOLLGATE_CHAT_URL, chatKey, PROVIDER_URLS.chat),
    discount: env.TOLLGATE_DISCOUNT,
    oidcClientSecret: env.TOLLGATE_OIDC_CLIENT_SECRET ?? null,
    /** Credentials for the providers' reports of usage. Only `tollgate reconcile` uses them. */
    reportKeys: {
      messages: env.TOLLGATE_MESSAGES_ADMIN_KEY ?? null,
      chat: env.TOLLGATE_CHAT_ADMIN_KEY ?? null,
    },
  }
}

type FileSettings = {
  -readonly [Member in keyof typeof FILE_SETTINGS]: z.output<(typeof FILE_SETTINGS)[Member][1]>
}

function fromFile(file: Json): FileSettings {
  const read = Object.entries(FILE_SETTINGS).map(([member, [name]]) => [
    member,
    memberAt(file, name.split('.')),
  ])
  return Object.fromEntries(read) as FileSettings
}

type Json = Readonly<Record<string, unknown>>

const memberAt = (json: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>(
    (value, part) => (value as Record<PropertyKey, unknown> | null | undefined)?.[part],
    json,
  )

function readVariables<Shape extends Readonly<Record<string, z.ZodType>>>(
  environment: Environment,
  schemas: Shape,
  problems: string[],
): z.output<z.ZodObject<Shape>> | null {
  // An empty variable counts as not set: `NAME= command` and unset secrets in compose files produce one.
  const set = Object.keys(schemas).filter((name) => (environment[name] ?? '') !== '')
  const read = z.object(schemas).safeParse(Object.fromEntries(set.map((name) => [name, environment[name]])))
  if (read.success) return read.data
  // Do not repeat the value, because it may be a secret.
  problems.push(...read.error.issues.map(({ path, message }) => `${String(path[0])} ${message}`))
  return null
}

/** OpenTelemetry's variables are validated only if an endpoint is set: they may be for other programs. */
function readTraces(environment: Environment, problems: string[]) {
  const isSet = (name: string) => (environment[name] ?? '') !== ''
  if (!isSet('OTEL_EXPORTER_OTLP_ENDPOINT') && !isSet('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT')) return null
  if (environment['OTEL_SDK_DISABLED']?.toLowerCase() === 'true') return null
  if (environment['OTEL_TRACES_EXPORTER'] === 'none') return null
  const otel = readVariables(environment, TRACE_VARIABLES, problems)
  return (
    otel && {
      sampler: otel.OTEL_TRACES_SAMPLER,
      ratio: Number(otel.OTEL_TRACES_SAMPLER_ARG),
      batch: {
        scheduledDelayMillis: otel.OTEL_BSP_SCHEDULE_DELAY,
        exportTimeoutMillis: otel.OTEL_BSP_EXPORT_TIMEOUT,
        maxQueueSize: otel.OTEL_BSP_MAX_QUEUE_SIZE,
        maxExportBatchSize: Math.min(otel.OTEL_BSP_MAX_EXPORT_BATCH_SIZE, otel.OTEL_BSP_MAX_QUEUE_SIZE),
      },
    }
  )
}

function upstream(url: URL | undefined, key: Secret | undefined, defaultUrl: string): UpstreamConfig | null {
  if (url === undefined && key === undefined) return null
  return { url: url ?? new URL(defaultUrl), key: key ?? null }
}

function withHeaders(
  upstream: UpstreamConfig | null,
  fixedHeaders: readonly string[],
): UpstreamConfig | null {
  return upstream === null ? null : { ...upstream, fixedHeaders }
}

/** Several processes on one address share a database, and each has its own port for metrics. */
function refuseSharedPort({
  reusePort,
  databaseUrl,
  metricsPort,
}: Pick<Config, 'reusePort' | 'databaseUrl' | 'metricsPort'>): string | null {
  if (!reusePort) return null
  if (process.platform !== 'linux') return 'TOLLGATE_REUSE_PORT needs Linux: unset it'
  if (databaseUrl === null)
    return 'TOLLGATE_REUSE_PORT needs PostgreSQL, because SQLite has one node: set TOLLGATE_DATABASE_URL, or unset it'
  if (metricsPort === null)
    return 'TOLLGATE_REUSE_PORT needs "metrics.port", one per process: set it in the configuration file of each'
  return null
}

/** The proxy variables that other programs use too. Like curl, the gateway accepts an address without a scheme. */
function readEgress(environment: Environment, problems: string[]): EgressRules {
  const of = (name: string) => environment[name.toLowerCase()] || environment[name] || ''
  const direct = of('NO_PROXY')
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
  const text = of('HTTPS_PROXY')
  if (text === '') return { proxy: null, direct }
  const url = URL.parse(text.includes('://') ? text : `http://${text}`)
  if (url === null || url.protocol !== 'http:' || url.hostname === '') {
    problems.push('HTTPS_PROXY must be a URL such as http://user:password@proxy.example:3128')
    return { proxy: null, direct }
  }
  const { username, password, hostname, port } = url
  const credential = Buffer.from(`${decodeEscapes(username)}:${decodeEscapes(password)}`).toString('base64')
  const authorization = username + password === '' ? null : new Secret(`Basic ${credential}`)
  return {
    proxy: { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port || 80), authorization },
    direct,
  }
}

function decodeEscapes(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function tlsFiles(environment: Environment, workingDir: string, problems: string[]): Config['tls'] {
  const { TOLLGATE_TLS_CERT: cert, TOLLGATE_TLS_KEY: key } = environment
  if (cert && key) return { certFile: resolve(workingDir, cert), keyFile: resolve(workingDir, key) }
  const [given, missing, what] = key ? ['KEY', 'CERT', 'certificate'] : ['CERT', 'KEY', 'private key']
  if (cert || key)
    problems.push(
      `TOLLGATE_TLS_${missing} is missing: name the file with the ${what} of TOLLGATE_TLS_${given}, or unset both`,
    )
  return null
}

function readPrices(path: string | undefined, workingDir: string, problems: string[]): Config['prices'] {
  if (!path) return null
  const file = resolve(workingDir, path)
  try {
    return { file, text: readFileSync(file, 'utf8') }
  } catch (error) {
    problems.push(`TOLLGATE_PRICES: ${file} cannot be read: ${fileProblem(error)}`)
    return null
  }
}

/** Variables of clients. The gateway ignores them, because it may be started from the same shell. */
export const CLIENT_VARIABLES: readonly string[] = ['TOLLGATE_URL', 'TOLLGATE_KEY']

/** Whether this shell is set up for a gateway elsewhere, which commands on the database cannot use. */
export function namesGateway(environment: Environment): boolean {
  return (environment['TOLLGATE_URL'] ?? '') !== ''
}

function refuseUnknownVariables(environment: Environment, problems: string[]): void {
  const known = Object.keys(VARIABLES)
  for (const name of Object.keys(environment)) {
    if (!name.startsWith('TOLLGATE_') || known.includes(name) || CLIENT_VARIABLES.includes(name)) continue
    const close = nearestName(name, known, 3)
    const hint = close === null ? '' : ` (did you mean ${close}?)`
    problems.push(`${name} is not a variable of Tollgate${hint}; docs/CONFIGURATION.md lists the names`)
  }
}

export function configFile(environment: Environment, workingDir = process.cwd()): string {
  return resolve(workingDir, environment['TOLLGATE_CONFIG'] || 'tollgate.json')
}

function readFile(environment: Environment, workingDir: string, problems: string[]): Json | null {
  const file = configFile(environment, workingDir)
  let json: unknown = {}
  try {
    json = JSON.parse(readFileSync(file, 'utf8'), withoutComments)
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    if (error instanceof SyntaxError) problems.push(`${file} is not JSON: ${error.message}`)
    else if (!isMissing || environment['TOLLGATE_CONFIG'])
      problems.push(
        `${environment['TOLLGATE_CONFIG'] ? 'TOLLGATE_CONFIG: ' : ''}${file} cannot be read: ${fileProblem(error)}`,
      )
  }
  const read = SETTINGS_SCHEMA.safeParse(json)
  if (read.success) return read.data
  for (const issue of read.error.issues)
    problems.push(...describeIssue(issue, json).map((text) => `${file}: ${text}`))
  return null
}

/** A JSON reviver that drops comments (`"// …"`) and `$schema`. */
function withoutComments(name: string, value: unknown): unknown {
  return name.startsWith('//') || name === '$schema' ? undefined : value
}

function describeIssue(issue: z.core.$ZodIssue, json: unknown): string[] {
  const name = issue.path.reduce<string>(
    (path, part) =>
      typeof part === 'number' ? `${path}[${part}]` : path === '' ? String(part) : `${path}.${String(part)}`,
    '',
  )
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => {
      const full = name === '' ? key : `${name}.${key}`
      // Short names are close to almost any other name.
      const near = nearestName(
        full,
        [...SETTING_NAMES, ...SECTION_NAMES],
        Math.min(3, Math.floor(key.length / 3)),
      )
      return `"${full}" is not a setting${near === null ? '' : ` (did you mean "${near}"?)`}`
    })
  const given = issue.code === 'invalid_key' ? undefined : memberAt(json, issue.path)
  const setting = name === '' ? '' : `"${name}" `
  return [`${setting}${issue.message}${given === undefined ? '' : `, not ${describeValue(given)}`}`]
}

/** Describes a wrong value. Only numbers are shown: other values may be long, or a secret in the wrong setting. */
function describeValue(given: unknown): string {
  if (given === null || typeof given === 'number') return String(given)
  if (Array.isArray(given)) return 'this list'
  if (typeof given === 'string') return 'this text'
  return typeof given === 'boolean' ? 'true or false' : 'an object'
}

/** The configured pepper, or the one in the data directory; else null. Throws if the file cannot be read. */
export function readPepper({ pepper, dataDir }: Config): Secret | null {
  if (pepper !== null) return pepper
  try {
    const text = readFileSync(join(dataDir, 'pepper'), 'utf8').trim()
    // An aborted start may have left an empty file, and an empty pepper protects nothing.
    return text === '' ? null : new Secret(text)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
