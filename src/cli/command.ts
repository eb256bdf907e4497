/** The command line is wrong. The message names the option. */
export class UsageError extends Error {}

/** The command failed. The message says why, and what to do. */
export class Failure extends Error {
  /** The code and details of the API's refusal, if it was one. */
  readonly code: string | null
  readonly details: unknown

  constructor(message: string, code: string | null = null, details: unknown = null) {
    super(message)
    this.code = code
    this.details = details
  }
}

/** Collects the values of an option that may be given several times. */
export function collect(value: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, value]
}

/** The examples section of a help text. */
export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`
}

export const ENVIRONMENT_HELP = `Environment of the gateway and of local commands:
  TOLLGATE_HOST           address to listen on (127.0.0.1)
  TOLLGATE_PORT           port to listen on, 0 for any (8787)
  TOLLGATE_DATA_DIR       database, pepper, first admin key (./data)
  TOLLGATE_DATABASE_URL   postgres://… for PostgreSQL; default: SQLite in the data directory
  TOLLGATE_CONFIG         JSON file with the other settings (./tollgate.json, if it exists)
  TOLLGATE_ADMIN_KEY      an admin key of your own, 32 characters or more
  TOLLGATE_MESSAGES_URL   upstream of the Messages surface (https://api.anthropic.com)
  TOLLGATE_MESSAGES_KEY   its key (value of ANTHROPIC_API_KEY)
  TOLLGATE_CHAT_URL       upstream of the Chat surface (https://api.openai.com/v1)
  TOLLGATE_CHAT_KEY       its key (value of OPENAI_API_KEY)
  TOLLGATE_DISCOUNT       fraction off list prices, such as 0.15 (0)
  TOLLGATE_PRICES         price overlay file; SIGHUP reloads it
  TOLLGATE_PEPPER         secret for the stored key digests (<data dir>/pepper)
  TOLLGATE_PREFIX         prefix of keys and x-…- headers (svc)
  TOLLGATE_TLS_CERT       certificate, a PEM file: serves https; SIGHUP reloads it
  TOLLGATE_TLS_KEY        its private key, a PEM file
  TOLLGATE_LOG_LEVEL      silent, fatal, error, warn, info, debug or trace (info)`
