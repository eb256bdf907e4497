import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Config, ConfigError, type Environment, readConfig } from '../config.ts'
import type { Surface } from '../providers/surface.ts'

export interface Settings {
  /** With what is wrong left out, so that the rest can be looked at. Null if nothing can be made of it. */
  readonly config: Config | null
  readonly problems: readonly string[]
  /** Surfaces whose URL may not be the one that was meant: their key must not be sent there. */
  readonly doubtful: ReadonlySet<Surface>
  /** The books may not be where it seems. */
  readonly booksAreDoubtful: boolean
}

/** A problem with one of these says nothing about where a provider's key belongs. */
const HARMLESS =
  /^TOLLGATE_(?:HOST|PORT|DATA_DIR|DATABASE_URL|CONFIG|ADMIN_KEY|PEPPER|DISCOUNT|PRICES|PREFIX|LOG_LEVEL)\b/
const OWN: Readonly<Record<Surface, RegExp>> = {
  messages: /^(?:TOLLGATE_MESSAGES_(?:URL|KEY)|ANTHROPIC_API_KEY)\b/,
  chat: /^(?:TOLLGATE_CHAT_(?:URL|KEY)|OPENAI_API_KEY)\b/,
}

/** The configuration as the gateway reads it or, where that refuses, as much of it as is good. */
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
  // It is the file. Without it, in a folder that has none; what is relative stays relative to the real one.
  const dataDir = resolve(workingDir, rest['TOLLGATE_DATA_DIR'] || 'data')
  const prices = rest['TOLLGATE_PRICES'] ? resolve(workingDir, rest['TOLLGATE_PRICES']) : ''
  return attempt(
    { ...rest, TOLLGATE_CONFIG: '', TOLLGATE_DATA_DIR: dataDir, TOLLGATE_PRICES: prices },
    join(tmpdir(), randomUUID()),
  ).config
}

/**
 * A mistyped name may be that of a URL, and the key beside it would go to the default one. So whatever is not known
 * to be about something else makes both surfaces doubtful.
 */
function doubtfulOf(problems: readonly string[]): Set<Surface> {
  const doubtful = new Set<Surface>()
  for (const text of problems) {
    const aboutVariable = /^[A-Z][A-Z0-9]*_/.test(text)
    if (!aboutVariable || HARMLESS.test(text)) continue
    if (!OWN.chat.test(text)) doubtful.add('messages')
    if (!OWN.messages.test(text)) doubtful.add('chat')
  }
  return doubtful
}

/** Shorter ones cannot be told from ordinary words, and protect nothing. */
const CHARS_MIN = 8

/**
 * No check prints a secret. But texts of others are shown (a model's name, where a redirect leads, what is wrong with
 * a file), and whoever wrote them may have had the key.
 */
export function hideSecretsOf(environment: Environment): (text: string) => string {
  const secrets = Object.entries(environment)
    .flatMap(([name, value = '']) => {
      if (/(?:_KEY|_PEPPER)$/.test(name)) return [value.trim()]
      return name.endsWith('DATABASE_URL') ? passwordsIn(value) : []
    })
    .filter((value) => value.length >= CHARS_MIN)
    .flatMap((value) => [value, encodeURIComponent(value)])
  return (text) => secrets.reduce((hidden, secret) => hidden.replaceAll(secret, '[secret]'), text)
}

/** As it stands in the URL, and as it is meant. */
function passwordsIn(url: string): string[] {
  const password = URL.canParse(url) ? new URL(url).password : ''
  try {
    return [password, decodeURIComponent(password)]
  } catch {
    return [password]
  }
}
