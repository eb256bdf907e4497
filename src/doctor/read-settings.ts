import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Config, ConfigError, type Environment, readConfig } from '../config.ts'
import { SURFACE_NAMES, type Surface } from '../kernel/surface.ts'
import { SURFACES } from '../providers/surfaces.ts'

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
 * to be about something else makes all surfaces doubtful.
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
