import type { Environment } from '../config.ts'

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
