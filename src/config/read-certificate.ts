import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { fileProblem } from '../kernel/errors.ts'
import { Secret } from '../kernel/secret.ts'
import { type Config, ConfigError } from './read-config.ts'

export type Certificate = ReturnType<typeof readCertificate>

export function readCertificate({ certFile, keyFile }: NonNullable<Config['tls']>) {
  const problems: string[] = []
  const cert = readPem('TOLLGATE_TLS_CERT', certFile, (text) => new X509Certificate(text), problems)
  const key = readPem('TOLLGATE_TLS_KEY', keyFile, createPrivateKey, problems)
  if (cert === null || key === null) throw new ConfigError(problems)
  if (!cert.parsed.checkPrivateKey(key.parsed))
    throw new ConfigError([
      `TOLLGATE_TLS_KEY: ${keyFile} is not the key of the first certificate in ${certFile}; use the key that belongs to the certificate`,
    ])
  try {
    createSecureContext({ cert: cert.text, key: key.text })
  } catch (error) {
    throw new ConfigError([`TOLLGATE_TLS_CERT: ${certFile} cannot be used: ${(error as Error).message}`])
  }
  const { validFromDate, validToDate, issuer, subject } = cert.parsed
  return {
    file: certFile,
    cert: cert.text,
    key: new Secret(key.text),
    names: namesOf(cert.parsed),
    fromMs: validFromDate.getTime(),
    untilMs: validToDate.getTime(),
    /** Clients must be configured to trust it. */
    isSelfSigned: issuer === subject,
  }
}

/** Why clients reject the certificate at this time; null if they accept it. */
export function outOfDate({ file, fromMs, untilMs }: Certificate, nowMs: number): string | null {
  if (nowMs > untilMs) return `the certificate in ${file} expired on ${dateOf(untilMs)}: clients refuse it`
  if (nowMs < fromMs)
    return `the certificate in ${file} is valid from ${dateOf(fromMs)} on: clients refuse it until then`
  return null
}

export function dateOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

function readPem<T>(
  variable: string,
  file: string,
  parse: (text: string) => T,
  problems: string[],
): { readonly text: string; readonly parsed: T } | null {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    problems.push(`${variable}: ${file} cannot be read: ${fileProblem(error)}`)
    return null
  }
  try {
    return { text, parsed: parse(text) }
  } catch (error) {
    const what = variable === 'TOLLGATE_TLS_KEY' ? 'key without a passphrase' : 'certificate'
    problems.push(`${variable}: ${file} has no ${what} in PEM format: ${(error as Error).message}`)
    return null
  }
}

/** The alternative names of the certificate. Clients ignore the common name. */
function namesOf({ subjectAltName = '' }: X509Certificate): string[] {
  return subjectAltName.split(', ').flatMap((entry) => /^(?:DNS|IP Address):(.+)$/.exec(entry)?.[1] ?? [])
}
