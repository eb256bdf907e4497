import { inspect } from 'node:util'

/** A value that must not reach a log, an error or a page. It prints as a placeholder; only `reveal()` returns it. */
export class Secret {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
  }

  reveal(): string {
    return this.#value
  }

  toString(): string {
    return '[secret]'
  }

  toJSON(): string {
    return '[secret]'
  }

  [inspect.custom](): string {
    return '[secret]'
  }
}

export type Redact = (text: string) => string

/** The forms of a secret in a text: plain, or escaped as in JSON, with or without escaped slashes. */
function writtenForms(secret: string): readonly string[] {
  const escaped = JSON.stringify(secret).slice(1, -1)
  return [...new Set([secret, escaped, escaped.replaceAll('/', '\\/')])]
}

/** An underscore: plain, percent-encoded, or JSON-escaped. */
const UNDERSCORE = '(?:_|%5[Ff]|\\\\u005[Ff])'

/** Replaces secrets by a placeholder, but leaves the prefix of our keys. */
export function createRedact(servicePrefix: string, secrets: readonly string[] = []): Redact {
  // Longest first: if one secret is a prefix of another, the rest of the longer one would remain.
  const longestFirst = secrets.flatMap(writtenForms).toSorted((a, b) => b.length - a.length)
  const literals = longestFirst.map((secret) => secret.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  const ownKey = `(${servicePrefix}${UNDERSCORE}(?:live|admin)${UNDERSCORE})[0-9A-Za-z]+`
  const pattern = [...literals, ownKey].join('|')
  // Few texts contain a secret. Searching for all at once takes a third of the time of searching one by one.
  const first = new RegExp(pattern)
  const all = new RegExp(pattern, 'g')
  // A replacer function takes three times as long: 49 instead of 16 ms for a MiB of keys.
  return (text) => (first.test(text) ? text.replace(all, '$1[redacted]') : text)
}

/** A very short key is a placeholder for a local server, and would match inside ordinary words. */
export const isRedactable = (secret: string): boolean => secret.length >= 8

/** Redacts one more secret: the credential that a call used. */
export function alsoRedacting(redact: Redact, key: Secret | null): Redact {
  const secret = key?.reveal() ?? ''
  if (!isRedactable(secret)) return redact
  const forms = writtenForms(secret)
  return (text) => forms.reduce((clean, form) => clean.replaceAll(form, '[redacted]'), redact(text))
}

const PERCENT_ENCODED = /%([2-7][0-9A-Fa-f])/g

/** Also removes secrets that are percent-encoded once or twice. A text with one of them is returned decoded. */
export function redactEncoded(text: string, redact: Redact): string {
  if (!text.includes('%')) return redact(text)
  let decoded = text
  for (let times = 0; times < 2; times++)
    decoded = decoded.replace(PERCENT_ENCODED, (_, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    )
  const clean = redact(decoded)
  return clean === decoded ? redact(text) : clean
}

/** Credentials of other services, by member name or form. Removing too much is better than removing too little. */
const FOREIGN_MEMBER =
  /("(?:authorization_token|authorization|access_token|refresh_token|client_secret|api[_-]?key|x-api-key|password)"\s*:\s*")(?!")[^"\\]*(?:\\.[^"\\]*)*/gi
const FOREIGN_KEY =
  /\b((?:sk|ek|rk|pk)[-_])[0-9A-Za-z_-]{16,}|\b(whsec_)[0-9A-Za-z+/]{16,}=*|\b(Bearer\s+)[0-9A-Za-z._~+/-]{16,}=*/g

const FOREIGN_KEY_CHARS_MIN = 19

export function redactBody(text: string, redact: Redact): string {
  return redactForeign(redact(text).replace(FOREIGN_MEMBER, '$1[redacted]'))
}

/** How a foreign key begins. Searching for it takes a third of the time of searching for the whole pattern. */
const FOREIGN_KEY_START = /[serp]k[-_]|whsec_|Bearer/

export function redactForeign(text: string): string {
  if (text.length < FOREIGN_KEY_CHARS_MIN || !FOREIGN_KEY_START.test(text)) return text
  return text.replace(FOREIGN_KEY, '$1$2$3[redacted]')
}

/** The database's location without password and parameters. */
export function shownDatabase(databaseUrl: Secret): string {
  const { hostname: host, port, pathname } = new URL(databaseUrl.reveal())
  return `postgres://${host}:${port || '5432'}${pathname}`
}
