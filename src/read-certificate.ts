import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { type Config, ConfigError } from './config.ts'
import { Secret } from './kernel/secret.ts'

type TlsFiles = NonNullable<Config['tls']>

export interface Certificate {
  readonly file: string
  /** PEM texts. */
  readonly cert: string
  readonly key: Secret
  /** The hosts and addresses that the certificate is for. */
  readonly names: readonly string[]
  readonly fromMs: number
  readonly untilMs: number
  /** Clients must be configured to trust a self-signed certificate. */
  readonly isSelfSigned: boolean
}

/** Reads and validates the configured certificate. Throws all problems together. */
export function readCertificate({ certFile, keyFile }: TlsFiles): Certificate {
  const problems: string[] = []
  const cert = textOf('TOLLGATE_TLS_CERT', certFile, problems)
  const key = textOf('TOLLGATE_TLS_KEY', keyFile, problems)
  const parsed = cert === null ? null : certificateIn(cert, certFile, problems)
  const parsedKey = key === null ? null : keyIn(key, keyFile, problems)
  if (parsed !== null && parsedKey !== null && !parsed.checkPrivateKey(parsedKey)) {
    problems.push(
      `TOLLGATE_TLS_KEY: ${keyFile} is not the key of the first certificate in ${certFile}; use the key that belongs to the certificate`,
    )
  }
  if (cert !== null && key !== null && problems.length === 0) {
    try {
      createSecureContext({ cert, key })
    } catch (error) {
      problems.push(`TOLLGATE_TLS_CERT: ${certFile} cannot be used: ${(error as Error).message}`)
    }
  }
  if (problems.length > 0 || cert === null || key === null || parsed === null) throw new ConfigError(problems)
  return {
    file: certFile,
    cert,
    key: new Secret(key),
    names: namesOf(parsed),
    fromMs: parsed.validFromDate.getTime(),
    untilMs: parsed.validToDate.getTime(),
    isSelfSigned: parsed.issuer === parsed.subject,
  }
}

/** Why clients will reject the certificate at this time; null if they will not. */
export function outOfDate({ file, fromMs, untilMs }: Certificate, nowMs: number): string | null {
  if (nowMs > untilMs) return `the certificate in ${file} expired on ${dayOf(untilMs)}: clients refuse it`
  if (nowMs < fromMs)
    return `the certificate in ${file} is good from ${dayOf(fromMs)} on: clients refuse it until then`
  return null
}

export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

function textOf(name: string, file: string, problems: string[]): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    problems.push(`${name}: ${file} cannot be read: ${(error as Error).message}`)
    return null
  }
}

const SWAPPED = 'are TOLLGATE_TLS_CERT and TOLLGATE_TLS_KEY mixed up?'

function certificateIn(text: string, file: string, problems: string[]): X509Certificate | null {
  try {
    if (text.includes('-----BEGIN CERTIFICATE-----')) return new X509Certificate(text)
    const found = text.includes('PRIVATE KEY-----')
      ? `it holds a key; ${SWAPPED}`
      : 'PEM has the line -----BEGIN CERTIFICATE-----'
    problems.push(`TOLLGATE_TLS_CERT: ${file} has no certificate in PEM format: ${found}`)
  } catch (error) {
    problems.push(`TOLLGATE_TLS_CERT: ${file} has no certificate in PEM format: ${(error as Error).message}`)
  }
  return null
}

function keyIn(text: string, file: string, problems: string[]): KeyObject | null {
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(text)) {
    problems.push(
      `TOLLGATE_TLS_KEY: ${file} is encrypted, and the gateway cannot ask for a passphrase; decrypt it: ` +
        `openssl pkey -in ${file} -out plain.key (mode 600)`,
    )
    return null
  }
  try {
    if (text.includes('PRIVATE KEY-----')) return createPrivateKey(text)
    const found = text.includes('-----BEGIN CERTIFICATE-----')
      ? `it holds a certificate; ${SWAPPED}`
      : 'PEM has the line -----BEGIN PRIVATE KEY-----'
    problems.push(`TOLLGATE_TLS_KEY: ${file} has no key in PEM format: ${found}`)
  } catch (error) {
    problems.push(`TOLLGATE_TLS_KEY: ${file} has no key in PEM format: ${(error as Error).message}`)
  }
  return null
}

/** Clients check only the alternative names; the common name is ignored. */
function namesOf({ subjectAltName = '' }: X509Certificate): string[] {
  return subjectAltName.split(', ').flatMap((entry) => /^(?:DNS|IP Address):(.+)$/.exec(entry)?.[1] ?? [])
}
