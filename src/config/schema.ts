import { isIP } from 'node:net'
import { z } from 'zod'
import { isHopByHop } from '../http/raw-headers.ts'
import { DEFAULT_THRESHOLDS, limits } from '../kernel/limits.ts'
import { LOG_LEVELS } from '../kernel/log-levels.ts'
import { NANOS_PER_USD, type Nanos, parseUsd } from '../kernel/money.ts'
import { Secret } from '../kernel/secret.ts'
import { PERSON_ROLES } from '../kernel/vocabulary.ts'

/** Every variable and setting, with bounds and default. `config-descriptions.json` describes them. */

const httpUrl = (hint = '') =>
  z.string('must be a URL in quotes').transform((text, context) => {
    const url = URL.parse(text)
    if (url === null || !/^https?:$/.test(url.protocol)) {
      context.addIssue('must be an absolute http:// or https:// URL')
      return z.NEVER
    }
    if (url.username + url.password + url.search + url.hash !== '') {
      context.addIssue(`must have no user, password, query or fragment${hint}`)
      return z.NEVER
    }
    return url
  })

const upstreamUrl = httpUrl('; the key has its own variable')

const secret = (charsMin: number) =>
  z
    .string()
    .min(charsMin, `must have at least ${charsMin} characters`)
    .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces')
    .transform((text) => new Secret(text))

/** The URL is a secret, because it may contain a password. */
const postgresUrl = z
  .string()
  .refine((text) => {
    const url = URL.parse(text)
    return url !== null && /^postgres(?:ql)?:$/.test(url.protocol) && url.hostname !== ''
  }, 'must be a URL such as postgres://user:password@host:5432/tollgate')
  .transform((text) => new Secret(text))

const FRACTION = 'must be a fraction from 0 to 1 with at most 9 decimals, such as 0.15'
const fraction = z.string(FRACTION).regex(/^(?:0(?:\.\d{1,9})?|1(?:\.0{1,9})?)$/, FRACTION)

const trueOrFalse = z.enum(['true', 'false'], 'must be true or false').transform((text) => text === 'true')

const PORT = 'must be a port number from 0 to 65535'
const port = z
  .string()
  .regex(/^\d{1,5}$/, PORT)
  .transform(Number)
  .refine((number) => number <= 65_535, PORT)

export const VARIABLES = {
  TOLLGATE_HOST: z.string().default('127.0.0.1'),
  TOLLGATE_PORT: port.default(8787),
  TOLLGATE_DATA_DIR: z.string().default('data'),
  TOLLGATE_DATABASE_URL: postgresUrl.optional(),
  TOLLGATE_CONFIG: z.string().optional(),
  TOLLGATE_ADMIN_KEY: secret(32).optional(),
  TOLLGATE_MESSAGES_URL: upstreamUrl.optional(),
  TOLLGATE_MESSAGES_KEY: secret(1).optional(),
  TOLLGATE_CHAT_URL: upstreamUrl.optional(),
  TOLLGATE_CHAT_KEY: secret(1).optional(),
  TOLLGATE_MESSAGES_ADMIN_KEY: secret(1).optional(),
  TOLLGATE_CHAT_ADMIN_KEY: secret(1).optional(),
  TOLLGATE_OIDC_CLIENT_SECRET: secret(1).optional(),
  TOLLGATE_PEPPER: secret(16).optional(),
  TOLLGATE_DISCOUNT: fraction.default('0'),
  TOLLGATE_PRICES: z.string().optional(),
  TOLLGATE_PREFIX: z
    .string()
    .regex(/^[a-z][a-z0-9]{0,15}$/, 'must be 1 to 16 lower-case letters and digits, beginning with a letter')
    .default('svc'),
  TOLLGATE_SIMULATOR: trueOrFalse.optional(),
  TOLLGATE_REUSE_PORT: trueOrFalse.optional(),
  TOLLGATE_TLS_CERT: z.string().optional(),
  TOLLGATE_TLS_KEY: z.string().optional(),
  TOLLGATE_LOG_LEVEL: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`).default('info'),
} as const

/** The providers' own variables, used when ours are not set. */
export const FALLBACK_VARIABLES = {
  ANTHROPIC_API_KEY: secret(1).optional(),
  OPENAI_API_KEY: secret(1).optional(),
}

const COUNT = 'must be a whole number from 1 to 1000000000'
const count = z
  .string()
  .regex(/^(?:[1-9]\d{0,8}|1000000000)$/, COUNT)
  .transform(Number)

const SAMPLERS = [
  ...(['always_on', 'always_off', 'traceidratio'] as const),
  ...(['parentbased_always_on', 'parentbased_always_off', 'parentbased_traceidratio'] as const),
] as const

/** OpenTelemetry's variables, which other programs on the host may share. Its exporter reads further ones itself. */
export const TRACE_VARIABLES = {
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl().optional(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: httpUrl().optional(),
  OTEL_TRACES_SAMPLER: z
    .enum(SAMPLERS, `must be one of ${SAMPLERS.join(', ')}`)
    .default('parentbased_always_on'),
  OTEL_TRACES_SAMPLER_ARG: fraction.default('1'),
  OTEL_BSP_SCHEDULE_DELAY: count.default(5_000),
  OTEL_BSP_EXPORT_TIMEOUT: count.default(30_000),
  OTEL_BSP_MAX_QUEUE_SIZE: count.default(2_048),
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: count.default(512),
} as const

const yesOrNo = (fallback: boolean) => z.boolean('must be true or false').default(fallback)

const oneOf = <const Choice extends string>(
  choices: readonly [Choice, ...Choice[]],
  fallback: NoInfer<Choice>,
) => {
  const listed = choices.map((choice) => `"${choice}"`).join(' or ')
  return z.enum(choices, `must be ${listed}`).default(fallback)
}

function number(min: number, max: number) {
  const expected = `must be a number from ${min} to ${max}`
  return z.number(expected).min(min, expected).max(max, expected)
}

function wholeNumber(min: number, max: number) {
  const expected = `must be a whole number from ${min} to ${max}`
  return z
    .number(expected)
    .refine(Number.isInteger, 'must be a whole number')
    .min(min, expected)
    .max(max, expected)
    .meta({ type: 'integer' })
}

/** A limit that null or 0 removes. */
const removableLimit = (max: number, fallback: number) =>
  wholeNumber(0, max)
    .nullable()
    .default(fallback)
    .transform((limit) => limit ?? 0)

const seconds = (min: number, max: number, fallbackMs: number) =>
  number(min, max)
    .default(fallbackMs / 1_000)
    .transform((value) => Math.round(value * 1_000))

const USD = 'must be a number of US dollars from 0 to 1000000000 with at most 9 decimals'
const usd = z.number(USD).transform((amount, context): Nanos => {
  const text = amount.toFixed(9)
  const nanos = Number(text) === amount ? parseUsd(text) : null
  if (nanos !== null && nanos >= 0n && nanos <= 1_000_000_000n * NANOS_PER_USD) return nanos
  context.addIssue(USD)
  return z.NEVER
})

const ADDRESS = 'must be an address or a range such as 10.0.0.0/8 or fd00::/8'

/** A zone (`%eth0`) is refused, because connection addresses are compared without one. */
function isAddress(text: string): boolean {
  const [, address = '', bits = '0'] = /^([0-9a-fA-F.:]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const family = isIP(address)
  return family !== 0 && Number(bits) <= (family === 4 ? 32 : 128)
}

const TIERS = ['default', 'flex', 'priority', 'ultrafast'] as const

const discountsByModel = z.record(
  z.string().regex(/^[\x21-\x29\x2b-\x7e]{0,199}[\x21-\x7e]$/),
  z.union([z.number().min(0).max(1).transform(String).pipe(fraction), fraction], FRACTION),
  {
    error: ({ code }) =>
      code === 'invalid_key' ? 'is not a model or a pattern that ends in "*"' : 'must be an object',
  },
)

const HEADER = 'is not the name of a header that can be fixed'

/** Names that the gateway sets itself, or that must stay the client's. */
const UNFIXABLE =
  /^(?:host|content-.*|accept-encoding|expect|idempotency-key|authorization|x-api-key|api-key|cookie|proxy-.*|sec-websocket-.*)$/

/** Header lines: name, value, name, value … */
const fixedHeaders = z
  .record(
    z
      .string()
      .refine(
        (name) =>
          /^[a-z][\w-]*$/i.test(name) &&
          !UNFIXABLE.test(name.toLowerCase()) &&
          !isHopByHop(name.toLowerCase()),
      ),
    z.string('must be a text').regex(/^[\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?$/, 'must be printable ASCII'),
    { error: ({ code }) => (code === 'invalid_key' ? HEADER : 'must be an object') },
  )
  .prefault({})
  .transform((headers) => Object.entries(headers).flat())

const modelName = z.string().regex(/^[\x21-\x7e]{1,200}$/, 'must be the id of a model')
const fallbacks = z.record(z.string().regex(/^[\x21-\x29\x2b-\x7e]{0,199}[\x21-\x7e]$/), modelName, {
  error: ({ code }) =>
    code === 'invalid_key' ? 'is not a model or a pattern that ends in "*"' : 'must be an object',
})

const thresholds = z
  .array(wholeNumber(1, 99), 'must be a list')
  .max(limits.budgetThresholdsMax, `must have at most ${limits.budgetThresholdsMax} entries`)
  .refine((all) => new Set(all).size === all.length, 'must not name a percentage twice')
  .default([...DEFAULT_THRESHOLDS])
  .transform((all) => all.toSorted((a, b) => a - b))

const text = (charsMax: number) => z.string('must be a text').min(1, 'must not be empty').max(charsMax)

const ISSUER =
  'must be the https:// URL of your provider without /.well-known/…, of one tenant, or http:// on a loopback address'

/** Kept as written, because the provider's tokens repeat it exactly. */
const issuer = z.string(ISSUER).refine((given) => {
  const url = URL.parse(given)
  if (url === null || url.username + url.password + url.search + url.hash !== '') return false
  // The library would take a URL of the document itself without checking whose it is.
  if (given.includes('/.well-known/')) return false
  // Entra's issuers for all tenants would let other companies in.
  if (/^\/(?:common|organizations|consumers)(?:\/|$)/.test(url.pathname)) return false
  return url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK.test(url.hostname))
}, ISSUER)
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

const DOMAIN = 'must be a domain such as example.com'

const signInRule = z.strictObject(
  {
    group: text(256),
    role: z.enum(PERSON_ROLES, `must be one of ${PERSON_ROLES.join(', ')}`),
    /** An id or a name. */
    account: text(120).optional(),
  },
  { error: ({ code }) => (code === 'invalid_type' ? 'must be an object' : undefined) },
)

const signInRules = z
  .array(signInRule, 'must be a list')
  .max(1_000)
  .default([])
  .superRefine((rules, context) => {
    for (const [at, { role, account }] of rules.entries()) {
      if (role === 'operator' && account !== undefined)
        context.addIssue({
          code: 'custom',
          path: [at, 'account'],
          message: 'must be left out for an operator',
        })
      if (role !== 'operator' && account === undefined)
        context.addIssue({ code: 'custom', path: [at], message: `needs "account" for the role ${role}` })
    }
  })

/** Every setting: its member of `Config`, its name in the file, and its schema with bounds and default. */
export const FILE_SETTINGS = {
  budgetMode: ['budgets.mode', oneOf(['exact', 'settled'], 'exact')],
  budgetWaitMs: ['budgets.wait_seconds', seconds(0, 600, limits.budgetWaitMs)],
  unpriced: ['pricing.unpriced', oneOf(['auto', 'refuse', 'pass'], 'auto')],
  discounts: ['pricing.discounts', discountsByModel.prefault({})],
  priceFallbacks: ['prices.fallbacks', fallbacks.prefault({})],
  retentionDays: ['requests.retention_days', wholeNumber(1, 3_650).default(30)],
  bodiesBytesMax: [
    'requests.bodies_bytes_max',
    wholeNumber(0, Number.MAX_SAFE_INTEGER).default(limits.loggedBodiesBytesMax),
  ],
  /** Null means all months. */
  keepMonths: ['requests.keep_months', wholeNumber(3, 1_200).nullable().default(null)],
  clientDetails: ['requests.client_details', yesOrNo(true)],
  bodyIdleTimeoutMs: ['requests.body_idle_seconds', seconds(0.1, 3_600, limits.bodyIdleTimeoutMs)],
  bodyBytesPerSecondMin: [
    'requests.body_bytes_per_second_min',
    removableLimit(1_000_000, limits.bodyBytesPerSecondMin),
  ],
  messagesHeaders: ['messages.headers', fixedHeaders],
  chatHeaders: ['chat.headers', fixedHeaders],
  injectUsage: ['chat.inject_usage', yesOrNo(true)],
  chatDefaultTier: [
    'chat.default_tier',
    z.enum(TIERS, 'must be "default", "flex", "priority" or "ultrafast"').nullable().default(null),
  ],
  stateful: ['stateful', oneOf(['pass', 'refuse'], 'pass')],
  minting: ['minting', oneOf(['pass', 'refuse'], 'refuse')],
  onLeave: ['streams.on_leave', oneOf(['cancel', 'finish'], 'cancel')],
  deferredPoll: ['deferred.poll', yesOrNo(true)],
  rewriteResultsUrl: ['deferred.rewrite_results_url', yesOrNo(false)],
  showBalance: ['headers.balance', yesOrNo(true)],
  callsInFlightPerKeyMax: [
    'limits.calls_in_flight_per_key',
    wholeNumber(1, 1_000_000).default(limits.callsInFlightPerKeyMax),
  ],
  /** 0 means no limit. */
  connectionsPerAddressMax: [
    'limits.connections_per_address',
    removableLimit(1_000_000, limits.connectionsPerAddressMax),
  ],
  unboundedHoldNanos: ['limits.unbounded_hold_usd', usd.prefault(25)],
  webhooksProxy: ['webhooks.proxy', yesOrNo(false)],
  webhooksAllowPrivate: ['webhooks.allow_private', yesOrNo(false)],
  balanceLowNanos: ['webhooks.balance_low_usd', usd.nullable().default(null)],
  budgetThresholdsPercent: ['webhooks.thresholds_percent', thresholds],
  metricsPublic: ['metrics.public', yesOrNo(false)],
  metricsPort: ['metrics.port', wholeNumber(0, 65_535).nullable().default(null)],
  dashboardUrl: ['dashboard_url', httpUrl().nullable().default(null)],
  signInIssuer: ['sign_in.issuer', issuer.nullable().default(null)],
  signInClientId: ['sign_in.client_id', text(256).nullable().default(null)],
  signInScopes: [
    'sign_in.scopes',
    z
      .array(
        z.string('must be a text').regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, 'must be a scope'),
        'must be a list',
      )
      .refine((scopes) => scopes.includes('openid'), 'must contain "openid"')
      .default(['openid', 'email', 'profile']),
  ],
  signInGroupsClaim: ['sign_in.groups_claim', text(256).default('groups')],
  signInEmailClaim: ['sign_in.email_claim', text(256).default('email')],
  signInAllowedDomains: [
    'sign_in.allowed_domains',
    z.array(z.string(DOMAIN).regex(/^[a-z0-9-]+(?:\.[a-z0-9-]+)*$/i, DOMAIN), 'must be a list').default([]),
  ],
  signInRules: ['sign_in.rules', signInRules],
  signInSessionHours: ['sign_in.session_hours', wholeNumber(1, 168).default(12)],
  signInDeviceDays: ['sign_in.device_days', wholeNumber(1, 400).default(30)],
  /** Null: devices get none. */
  signInManagedSettings: [
    'sign_in.managed_settings',
    z.record(z.string(), z.unknown(), 'must be an object').nullable().default(null),
  ],
  trustedProxies: [
    'trusted_proxies',
    z.array(z.string(ADDRESS).refine(isAddress, ADDRESS), 'must be a list').default([]),
  ],
  doctorProbe: ['doctor.probe', yesOrNo(true)],
  drainMs: ['shutdown.drain_seconds', seconds(0, 3_600, limits.drainMs)],
} as const satisfies Readonly<Record<string, readonly [name: string, schema: z.ZodType]>>

export const SETTING_NAMES: readonly string[] = Object.values(FILE_SETTINGS).map(([name]) => name)

export const SECTION_NAMES: readonly string[] = [
  ...new Set(SETTING_NAMES.filter((name) => name.includes('.')).map((name) => name.split('.')[0] ?? '')),
]

const section = (shape: Record<string, z.ZodType>) =>
  z.strictObject(shape, {
    error: (issue) => (issue.code === 'invalid_type' ? 'must be an object' : undefined),
  })

/** The file: settings with a dot in their name are members of a section. */
export const SETTINGS_SCHEMA = section(
  Object.fromEntries(
    Object.entries(Object.groupBy(Object.values(FILE_SETTINGS), ([name]) => name.split('.', 1)[0] ?? '')).map(
      ([top, rows = []]): [string, z.ZodType] => {
        const [first] = rows
        if (first?.[0] === top) return [top, first[1]]
        const inner = rows.map(([name, schema]) => [name.slice(top.length + 1), schema])
        return [top, section(Object.fromEntries(inner)).prefault({})]
      },
    ),
  ),
)
