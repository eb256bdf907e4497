import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Config, ConfigError, type Environment, readConfig, type UpstreamConfig } from '../config.ts'
import { SURFACE_NAMES, type Surface } from '../kernel/surface.ts'
import { findModel, type PriceVersion, versionAt } from '../pricing/price-book.ts'
import { SURFACES } from '../providers/surfaces.ts'
import { dayOf, outOfDate, readCertificate } from '../read-certificate.ts'
import { readPricing } from '../read-pricing.ts'
import { type Check, counted, inTime, verdicts } from './check.ts'

export interface Settings {
  /** The configuration without its faulty settings, so that the rest can be checked. Null if the rest cannot be read either. */
  readonly config: Config | null
  readonly problems: readonly string[]
  /** Surfaces whose URL may not be the URL that was meant: the surface's key must not be sent there. */
  readonly doubtful: ReadonlySet<Surface>
  /** The books may not be in the data directory though the configuration seems to say so: TOLLGATE_DATABASE_URL is faulty. */
  readonly booksAreDoubtful: boolean
}

/** A problem with one of these variables says nothing about where a provider's key belongs. */
const HARMLESS =
  /^TOLLGATE_(?:HOST|PORT|DATA_DIR|DATABASE_URL|CONFIG|ADMIN_KEY|PEPPER|DISCOUNT|PRICES|PREFIX|LOG_LEVEL|TLS_CERT|TLS_KEY)\b/

/** The configuration as the gateway reads it or, where the gateway refuses it, without the settings at fault. */
export function readSettings(environment: Environment, workingDir: string): Settings {
  const read = attempt(environment, workingDir)
  if (read.config !== null) return { ...read, doubtful: new Set(), booksAreDoubtful: false }
  const { problems } = read
  return {
    config: readRest(environment, workingDir, problems),
    problems,
    doubtful: doubtfulOf(problems),
    booksAreDoubtful: problems.some((text) => text.startsWith('TOLLGATE_DATABASE_URL ')),
  }
}

function attempt(
  environment: Environment,
  workingDir: string,
): { readonly config: Config | null; readonly problems: readonly string[] } {
  try {
    return { config: readConfig(environment, workingDir), problems: [] }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return { config: null, problems: error.problems }
  }
}

function readRest(environment: Environment, workingDir: string, problems: readonly string[]): Config | null {
  const isFaulty = (name: string): boolean =>
    problems.some((text) => text.startsWith(`${name} `) || text.startsWith(`${name}:`))
  const rest = Object.fromEntries(Object.entries(environment).filter(([name]) => !isFaulty(name)))
  const withFile = attempt(rest, workingDir).config
  if (withFile !== null) return withFile
  // The configuration file is at fault: read without it, in a folder that has none. Relative paths stay relative to the real one.
  const dataDir = resolve(workingDir, rest['TOLLGATE_DATA_DIR'] || 'data')
  const prices = rest['TOLLGATE_PRICES'] ? resolve(workingDir, rest['TOLLGATE_PRICES']) : ''
  return attempt(
    { ...rest, TOLLGATE_CONFIG: '', TOLLGATE_DATA_DIR: dataDir, TOLLGATE_PRICES: prices },
    join(tmpdir(), randomUUID()),
  ).config
}

/**
 * A mistyped name may be that of a URL, and the key beside it would go to the default URL. So a problem with a variable that
 * is not known to be about something else makes all surfaces doubtful.
 */
function doubtfulOf(problems: readonly string[]): Set<Surface> {
  const doubtful = new Set<Surface>()
  for (const text of problems) {
    const aboutVariable = /^[A-Z][A-Z0-9]*_/.test(text)
    if (!aboutVariable || HARMLESS.test(text)) continue
    const owner = SURFACE_NAMES.find((surface) => isOfSurface(surface, text))
    for (const surface of owner === undefined ? SURFACE_NAMES : [owner]) doubtful.add(surface)
  }
  return doubtful
}

function isOfSurface(surface: Surface, problem: string): boolean {
  const names = Object.values(SURFACES[surface].upstream.variables)
  return names.some((name) => new RegExp(`^${name}\\b`).test(problem))
}

export function checkConfiguration({ problems }: Settings): Check[] {
  const { ok, problem } = verdicts('configuration')
  if (problems.length === 0) return [ok('all variables and settings are good')]
  return problems.map((text) => problem(text, 'Mend it and start again: the gateway does not start with it.'))
}

export function checkSurfaces({ config, doubtful }: Settings): Check {
  const { ok, skipped, warning } = verdicts('surfaces')
  if (config === null || doubtful.size > 0) return skipped('not looked at before the configuration is good')
  const { messages, chat } = config
  if (messages === null && chat === null)
    return warning(
      'the built-in simulator only: every answer is made up, and its prices are charged',
      'For real use set ANTHROPIC_API_KEY and/or OPENAI_API_KEY, or the URL of a server of your own.',
    )
  const found = `${describe('Messages', messages)}, ${describe('Chat', chat)}`
  const inClear = [messages, chat].find((upstream) => upstream !== null && sendsKeyInClear(upstream))
  if (inClear)
    return warning(
      `${found}; the key goes to ${inClear.url.host} unencrypted`,
      'Use https:// if that host is beyond a network that you trust.',
    )
  return ok(found)
}

const RENEW_BEFORE_MS = 14 * 24 * 3_600_000

/** No check where the gateway speaks plain HTTP. */
export function checkCertificate({ tls }: Config, nowMs: number): Check[] {
  if (tls === null) return []
  const { ok, warning, problem } = verdicts('certificate')
  try {
    const certificate = readCertificate(tls)
    const { file, names, untilMs } = certificate
    const refused = outOfDate(certificate, nowMs)
    if (refused !== null) return [problem(refused, 'Put a new one in its place and send the gateway SIGHUP.')]
    if (names.length === 0)
      return [problem(`${file} names no host: clients refuse it`, 'Make one with subjectAltName.')]
    const found = `for ${names.join(', ')}, until ${dayOf(untilMs)}`
    if (untilMs - nowMs > RENEW_BEFORE_MS) return [ok(found)]
    return [warning(`${found}: ${inTime(untilMs - nowMs)} are left`, 'Renew it and send the gateway SIGHUP.')]
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map((text) => problem(text, 'Mend it: the gateway does not start with it.'))
  }
}

function describe(label: string, upstream: Config['messages']): string {
  if (upstream === null) return `${label} not configured (answers 503)`
  return `${label} at ${upstream.url.href}${upstream.key === null ? ' without a key' : ''}`
}

function sendsKeyInClear({ url, key }: UpstreamConfig): boolean {
  const isLoopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(url.hostname)
  return key !== null && url.protocol === 'http:' && !isLoopback
}

const NAMES_SHOWN_MAX = 20

/** `listed` are the models that upstream says it has. Null: upstream was not asked, or gave no list. */
export async function* checkPrices(
  config: Config,
  listed: readonly string[] | null,
  nowMs: number,
): AsyncGenerator<Check> {
  const { problem } = verdicts('prices')
  try {
    yield comparePrices(versionAt((await readPricing(config)).book, nowMs), listed, config)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    for (const text of error.problems)
      yield problem(text, 'Mend it; `tollgate prices check <file>` looks at an overlay alone.')
  }
}

function comparePrices(version: PriceVersion, listed: readonly string[] | null, config: Config): Check {
  const { ok, warning } = verdicts('prices')
  const overlay = config.prices === null ? '' : `, with ${config.prices.file}`
  const book = `${counted(version.models.length, 'model')} in ${version.id}${overlay}`
  if (listed === null) return ok(`${book}; not compared with upstream's models`)
  const missing = listed.filter((name) => findModel(version, name) === null)
  const all = counted(listed.length, 'model')
  if (missing.length === 0) return ok(`${book}; all ${all} that upstream lists have a price`)
  const shown = missing.slice(0, NAMES_SHOWN_MAX).join(', ')
  const more = missing.length > NAMES_SHOWN_MAX ? ` and ${missing.length - NAMES_SHOWN_MAX} more` : ''
  return warning(
    `no price for ${missing.length} of ${all} that upstream lists: ${shown}${more}`,
    `${CONSEQUENCE[config.unpriced]} Make an overlay with \`tollgate prices import\` or by hand, as docs/BILLING.md ` +
      'shows, and set TOLLGATE_PRICES to it.',
  )
}

const CONSEQUENCE: Readonly<Record<Config['unpriced'], string>> = {
  auto: 'Keys with a limit are refused these models, others call them at cost 0, flagged as unpriced.',
  refuse: 'Calls of these models are refused.',
  pass: 'Calls of these models cost 0, flagged as unpriced, and pass every cap.',
}

/** Secrets shorter than this cannot be told from ordinary words, and protect nothing. */
const CHARS_MIN = 8

/**
 * No check prints a secret. But checks show texts of other authors (a model's name, the target of a redirect, the problem with
 * a file), and those authors may have had the key.
 */
export function hideSecretsOf(environment: Environment): (text: string) => string {
  const secrets = Object.entries(environment)
    .flatMap(([name, value = '']) => {
      // The value of TOLLGATE_TLS_KEY is the name of a file.
      if (name === 'TOLLGATE_TLS_KEY') return []
      if (/(?:_KEY|_PEPPER)$/.test(name)) return [value.trim()]
      return name.endsWith('DATABASE_URL') ? passwordsIn(value) : []
    })
    .filter((value) => value.length >= CHARS_MIN)
    .flatMap((value) => [value, encodeURIComponent(value)])
  return (text) => secrets.reduce((hidden, secret) => hidden.replaceAll(secret, '[secret]'), text)
}

/** The password as it stands in the URL, and decoded. */
function passwordsIn(url: string): string[] {
  const password = URL.canParse(url) ? new URL(url).password : ''
  try {
    return [password, decodeURIComponent(password)]
  } catch {
    return [password]
  }
}
