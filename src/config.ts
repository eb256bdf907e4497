import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { limits } from './kernel/limits.ts'
import { LOG_LEVELS, type LogLevel } from './kernel/log.ts'
import { Secret } from './kernel/secret.ts'

/**
 * Configuration is read once, here, from environment variables (scalars and secrets) and an optional JSON file
 * (the rest); the environment wins. Unknown names are refused in both, because a typo must not weaken a limit,
 * and all problems are reported together. Nothing else in the project reads the environment.
 */

export interface UpstreamConfig {
  /** Where the surface's SDK base URL would point. */
  readonly url: URL
  /** What upstream is paid with. Absent for local model servers that ask for none. */
  readonly key: Secret | null
}

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
  /** `null` on both: the built-in simulator is upstream. `null` on one: that surface answers 503. */
  readonly messages: UpstreamConfig | null
  readonly chat: UpstreamConfig | null
  readonly stateful: 'pass' | 'refuse'
  /** The text of the price overlay file, or null without one. */
  readonly prices: { readonly file: string; readonly text: string } | null
  /** Off list prices, as decimal fractions: one for all models, and more specific ones by pattern. */
  readonly discount: string
  readonly discounts: Readonly<Record<string, string>>
  readonly unpriced: 'auto' | 'refuse' | 'pass'
  readonly injectUsage: boolean
  /** The service tier of the upstream project, for requests that name none. */
  readonly chatDefaultTier: string | null
  readonly budgetMode: 'exact' | 'settled'
  /** How long a call waits for room under a cap or for credit. */
  readonly budgetWaitMs: number
  /** How long logged bodies are kept. */
  readonly retentionDays: number
  readonly drainMs: number
  readonly bodyIdleTimeoutMs: number
}

export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(`The configuration cannot be used:\n${problems.map((p) => `  - ${p}`).join('\n')}`)
    this.problems = problems
  }
}

export type Environment = Readonly<Record<string, string | undefined>>

const httpUrl = z.string().transform((text, context) => {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    context.addIssue('must be an absolute http:// or https:// URL')
    return z.NEVER
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    context.addIssue('must have no user, password, query or fragment; the key has its own variable')
    return z.NEVER
  }
  return url
})

/** A secret, because a password may be part of it. */
const postgresUrl = z.string().transform((text, context) => {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^postgres(?:ql)?:$/.test(url.protocol) || url.hostname === '') {
    context.addIssue('must be a URL such as postgres://user:password@host:5432/tollgate')
    return z.NEVER
  }
  return new Secret(text)
})

const secret = (charsMin: number) =>
  z
    .string()
    .min(charsMin, `must have at least ${charsMin} characters`)
    .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without blanks')
    .transform((text) => new Secret(text))

const fraction = z
  .string()
  .regex(
    /^(?:0(?:\.\d{1,9})?|1(?:\.0{1,9})?)$/,
    'must be a fraction from 0 to 1 with at most 9 decimals, such as 0.15',
  )

/** The variables that belong to us, each with its shape. A name outside this table is refused. */
const environmentShape = {
  TOLLGATE_HOST: z.string().min(1, 'must not be empty'),
  TOLLGATE_PORT: z
    .string()
    .regex(/^\d{1,5}$/, 'must be a port number from 0 to 65535')
    .transform(Number)
    .refine((port) => port <= 65_535, 'must be a port number from 0 to 65535'),
  TOLLGATE_DATA_DIR: z.string().min(1, 'must not be empty'),
  TOLLGATE_DATABASE_URL: postgresUrl,
  TOLLGATE_CONFIG: z.string().min(1, 'must not be empty'),
  TOLLGATE_ADMIN_KEY: secret(32),
  TOLLGATE_MESSAGES_URL: httpUrl,
  TOLLGATE_MESSAGES_KEY: secret(1),
  TOLLGATE_CHAT_URL: httpUrl,
  TOLLGATE_CHAT_KEY: secret(1),
  TOLLGATE_PEPPER: secret(16),
  TOLLGATE_DISCOUNT: fraction,
  TOLLGATE_PRICES: z.string().min(1, 'must not be empty'),
  TOLLGATE_PREFIX: z
    .string()
    .regex(/^[a-z][a-z0-9]{0,15}$/, 'must be 1 to 16 lower-case letters and digits, beginning with a letter'),
  TOLLGATE_LOG_LEVEL: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`),
} as const

/** The providers' own variables, used when ours are not set. */
const fallbackShape = { ANTHROPIC_API_KEY: secret(1), OPENAI_API_KEY: secret(1) } as const

const fileShape = z.strictObject({
  pricing: z
    .strictObject({
      unpriced: z.enum(['auto', 'refuse', 'pass'], 'must be "auto", "refuse" or "pass"').optional(),
      discounts: z.record(z.string().min(1), fraction).optional(),
    })
    .optional(),
  chat: z
    .strictObject({
      inject_usage: z.boolean().optional(),
      default_tier: z.enum(['default', 'flex', 'priority', 'ultrafast']).optional(),
    })
    .optional(),
  budgets: z
    .strictObject({
      mode: z.enum(['exact', 'settled'], 'must be "exact" or "settled"').optional(),
      wait_seconds: z.number().min(0).max(600).optional(),
    })
    .optional(),
  stateful: z.enum(['pass', 'refuse'], 'must be "pass" or "refuse"').optional(),
  shutdown: z.strictObject({ drain_seconds: z.number().min(0).max(3_600).optional() }).optional(),
  requests: z
    .strictObject({
      body_idle_seconds: z.number().min(0.1).max(3_600).optional(),
      retention_days: z.number().int().min(1).max(3_650).optional(),
    })
    .optional(),
})

type EnvironmentValues = { [K in keyof typeof environmentShape]?: z.output<(typeof environmentShape)[K]> }
type FallbackValues = { [K in keyof typeof fallbackShape]?: z.output<(typeof fallbackShape)[K]> }

export function readConfig(environment: Environment, workingDir = process.cwd()): Config {
  const problems: string[] = []
  const env = readVariables<EnvironmentValues>(environment, environmentShape, problems)
  const fallback = readVariables<FallbackValues>(environment, fallbackShape, problems)
  refuseUnknownVariables(environment, problems)
  const file = readFile(env.TOLLGATE_CONFIG, workingDir, problems)
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
    prices,
    discount: env.TOLLGATE_DISCOUNT ?? '0',
    discounts: file.pricing?.discounts ?? {},
    unpriced: file.pricing?.unpriced ?? 'auto',
    injectUsage: file.chat?.inject_usage ?? true,
    chatDefaultTier: file.chat?.default_tier ?? null,
    budgetMode: file.budgets?.mode ?? 'exact',
    budgetWaitMs: seconds(file.budgets?.wait_seconds) ?? limits.budgetWaitMs,
    retentionDays: file.requests?.retention_days ?? 30,
    drainMs: seconds(file.shutdown?.drain_seconds) ?? limits.drainMs,
    bodyIdleTimeoutMs: seconds(file.requests?.body_idle_seconds) ?? limits.bodyIdleTimeoutMs,
  }
}

function upstream(url: URL | undefined, key: Secret | undefined, defaultUrl: string): UpstreamConfig | null {
  if (url === undefined && key === undefined) return null
  return { url: url ?? new URL(defaultUrl), key: key ?? null }
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

function readVariables<Values>(
  environment: Environment,
  shape: Readonly<Record<string, z.ZodType>>,
  problems: string[],
): Values {
  const values: Record<string, unknown> = {}
  for (const [name, schema] of Object.entries(shape)) {
    const text = environment[name]
    // An empty variable is what `NAME= command` and unset secrets in compose files give: it means "not set".
    if (text === undefined || text === '') continue
    const parsed = schema.safeParse(text)
    if (parsed.success) values[name] = parsed.data
    else for (const issue of parsed.error.issues) problems.push(`${name} ${issue.message}`)
  }
  return values as Values
}

function refuseUnknownVariables(environment: Environment, problems: string[]): void {
  const known = Object.keys(environmentShape)
  for (const name of Object.keys(environment)) {
    if (!name.startsWith('TOLLGATE_') || known.includes(name)) continue
    problems.push(
      `${name} is not a variable of Tollgate${suggestion(name, known)}; the names are in the README`,
    )
  }
}

function readFile(
  path: string | undefined,
  workingDir: string,
  problems: string[],
): z.output<typeof fileShape> {
  const file = path === undefined ? join(workingDir, 'tollgate.json') : resolve(workingDir, path)
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
  const parsed = fileShape.safeParse(json)
  if (parsed.success) return parsed.data
  for (const issue of parsed.error.issues) {
    const at = issue.path.join('.')
    if (issue.code === 'unrecognized_keys') {
      for (const key of issue.keys)
        problems.push(`${file}: "${[at, key].filter(Boolean).join('.')}" is not a setting`)
    } else problems.push(`${file}: "${at}" ${issue.message}`)
  }
  return {}
}

function suggestion(name: string, known: readonly string[]): string {
  const close = known.find((candidate) => distance(name, candidate) <= 3)
  return close === undefined ? '' : ` (did you mean ${close}?)`
}

/** Levenshtein's distance, for names of some thirty characters at start-up only. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const substituted = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next[j] = Math.min(substituted, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1)
    }
    row = next
  }
  return row[b.length] ?? 0
}
