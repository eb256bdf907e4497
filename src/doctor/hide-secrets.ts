import type { Environment } from '../config.ts'

/** Shorter ones cannot be told from ordinary words, and protect nothing. */
const CHARS_MIN = 8

/**
 * No check prints a secret. But texts of others are shown (a model's name, where a redirect leads, what is wrong with
 * a file), and whoever wrote them may have had the key.
 */
export function hideSecretsOf(environment: Environment): (text: string) => string {
  const secrets = Object.entries(environment)
    .filter(([name]) => /(?:_KEY|_PEPPER)$/.test(name))
    .map(([, value]) => value?.trim() ?? '')
    .filter((value) => value.length >= CHARS_MIN)
    .flatMap((value) => [value, encodeURIComponent(value)])
  return (text) => secrets.reduce((hidden, secret) => hidden.replaceAll(secret, '[secret]'), text)
}
