import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { outOfDate, readCertificate } from '../../src/config/read-certificate.ts'
import { type Config, ConfigError, readConfig } from '../../src/config/read-config.ts'
import { checkCertificate } from '../../src/doctor/local-checks.ts'
import { localPair, otherPair, writePair } from '../support/certificates.ts'
import { after, test } from '../support/suite.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-certificate-'))
after(() => rmSync(folder, { recursive: true }))

const DAY_MS = 24 * 3_600_000
const environment = writePair(folder, localPair)

function configOf(pair: Partial<typeof localPair> = {}) {
  writePair(folder, { ...localPair, ...pair })
  return readConfig(environment, folder)
}

function problemsWith(pair: Partial<typeof localPair>): readonly string[] {
  const { tls } = configOf(pair)
  try {
    readCertificate(tls ?? assert.fail('no TLS'))
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  assert.fail('it was taken')
}

const encrypted = (type: 'pkcs8' | 'sec1') =>
  createPrivateKey(localPair.key)
    .export({ type, format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' })
    .toString()

test('a certificate states its names and its expiry', () => {
  const read = readCertificate(configOf().tls ?? assert.fail('no TLS'))
  assert.deepEqual(read.names, ['localhost', '127.0.0.1'])
  assert.equal(read.isSelfSigned, true)
  assert.equal(new Date(read.untilMs).getUTCFullYear(), 2126)
  assert.doesNotMatch(JSON.stringify(read), /PRIVATE KEY/)
})

test('without both TLS variables the gateway serves HTTP, and with only one it refuses to start', () => {
  assert.equal(readConfig({}, folder).tls, null)
  const { TOLLGATE_TLS_CERT, TOLLGATE_TLS_KEY } = environment
  assert.throws(
    () => readConfig({ TOLLGATE_TLS_CERT }, folder),
    /- TOLLGATE_TLS_KEY is missing: name the file/,
  )
  assert.throws(
    () => readConfig({ TOLLGATE_TLS_KEY }, folder),
    /- TOLLGATE_TLS_CERT is missing: name the file/,
  )
})

test('missing files are reported together', () => {
  const [cert, key] = [join(folder, 'no.pem'), join(folder, 'no.key')]
  const config = readConfig({ TOLLGATE_TLS_CERT: 'no.pem', TOLLGATE_TLS_KEY: key }, folder)
  assert.throws(
    () => readCertificate(config.tls ?? assert.fail('no TLS')),
    (error: Error) =>
      error.message.includes(`TOLLGATE_TLS_CERT: ${cert} cannot be read: there is no such file`) &&
      error.message.includes(`TOLLGATE_TLS_KEY: ${key} cannot be read: there is no such file`),
  )
})

const bad: readonly (readonly [what: string, pair: Partial<typeof localPair>, problem: RegExp])[] = [
  [
    'a certificate that is not PEM',
    { cert: '\x30\x82' },
    /^TOLLGATE_TLS_CERT: .*cert\.pem has no certificate in PEM format: /,
  ],
  [
    'a certificate that is damaged',
    { cert: localPair.cert.replace('MII', 'XXX') },
    /^TOLLGATE_TLS_CERT: .* has no certificate in PEM format/,
  ],
  [
    'a damaged one behind a good one',
    { cert: `${localPair.cert}\n${localPair.cert.replace('MII', 'XXX')}` },
    /^TOLLGATE_TLS_CERT: .* cannot be used/,
  ],
  [
    'a key in the place of the certificate',
    { cert: localPair.key },
    /^TOLLGATE_TLS_CERT: .* has no certificate/,
  ],
  ['a certificate in the place of the key', { key: localPair.cert }, /^TOLLGATE_TLS_KEY: .* has no key/],
  [
    'a key that is not PEM',
    { key: 'secret' },
    /^TOLLGATE_TLS_KEY: .* has no key without a passphrase in PEM format/,
  ],
  [
    'a key that is damaged',
    { key: localPair.key.replace('MIG', 'XXX') },
    /^TOLLGATE_TLS_KEY: .* has no key without a passphrase in PEM format/,
  ],
  [
    'the key of another certificate',
    { key: otherPair.key },
    /^TOLLGATE_TLS_KEY: .*key\.pem is not the key of the first certificate in .*cert\.pem/,
  ],
  ['an encrypted key', { key: encrypted('pkcs8') }, /^TOLLGATE_TLS_KEY: .* has no key without a passphrase/],
  [
    'an encrypted key of the older form',
    { key: encrypted('sec1') },
    /^TOLLGATE_TLS_KEY: .* has no key without a passphrase/,
  ],
]
for (const [what, pair, problem] of bad) {
  test(`${what} is refused, with the variable, the file and the fix`, () => {
    const problems = problemsWith(pair)
    assert.equal(problems.length, 1, problems.join('\n'))
    assert.match(problems[0] ?? '', problem)
    assert.doesNotMatch(problems[0] ?? '', /MIGHAgEA/)
  })
}

test('an expired or future certificate is served with a warning', () => {
  const certificate = readCertificate(configOf().tls ?? assert.fail('no TLS'))
  const { fromMs, untilMs } = certificate
  assert.equal(outOfDate(certificate, fromMs), null)
  assert.equal(outOfDate(certificate, untilMs), null)
  assert.match(outOfDate(certificate, untilMs + 1) ?? '', /expired on 2126-10-22: clients refuse it$/)
  assert.match(outOfDate(certificate, fromMs - 1) ?? '', /is valid from 2026-11-15 on/)
})

test('the check warns two weeks before the expiry, and finds what clients and the start refuse', async () => {
  const config = configOf()
  const { fromMs, untilMs } = readCertificate(config.tls ?? assert.fail('no TLS'))
  const stateOf = async (of: Config, nowMs: number) => {
    const found = await checkCertificate({ config: of, nowMs, snapshot: Promise.resolve(null) })
    return [found].flat().map(({ state }) => state)
  }
  assert.deepEqual(await stateOf({ ...config, tls: null }, 0), ['skipped'])
  assert.deepEqual(await stateOf(config, untilMs - 14 * DAY_MS - 1), ['ok'])
  assert.deepEqual(await stateOf(config, untilMs - 14 * DAY_MS), ['warning'])
  assert.deepEqual(await stateOf(config, untilMs + 1), ['warning'])
  assert.deepEqual(await stateOf(config, fromMs - 1), ['warning'])
  assert.deepEqual(await stateOf(configOf({ key: otherPair.key }), fromMs), ['problem'])
})
