import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import tls from 'node:tls'
import { promisify } from 'node:util'
import { localPair, otherPair, writePair } from '../support/certificates.ts'
import { curlStandIn } from '../support/curl-stand-in.ts'
import { withDeadline } from '../support/deadline.ts'
import { after, test } from '../support/suite.ts'
import { runTollgate, serveTollgate } from '../support/tollgate-process.ts'

const execute = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'tollgate-tls-'))
const files = writePair(folder, localPair)
const tollgate = await serveTollgate(files)
after(async () => {
  await tollgate.dispose()
  rmSync(folder, { recursive: true })
})

async function open(): Promise<tls.TLSSocket> {
  const port = Number(new URL(tollgate.url).port)
  const socket = tls.connect({ host: 'localhost', port, ca: [localPair.cert, otherPair.cert] })
  await once(socket, 'secureConnect')
  await askHealth(socket)
  return socket
}

async function askHealth(socket: tls.TLSSocket): Promise<void> {
  socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
  const [reply] = await withDeadline(once(socket, 'data'), () => 'no answer')
  assert.match(String(reply), /^HTTP\/1\.1 200 /)
}

const commonName = (socket: tls.TLSSocket) => socket.getPeerCertificate().subject.CN

test('the banner names the certificate, and its commands make a first call over https', async () => {
  assert.match(tollgate.url, /^https:\/\/127\.0\.0\.1:\d+$/)
  assert.match(tollgate.banner, /TLS +\S+cert\.pem, for localhost, 127\.0\.0\.1, until 2126-10-22\n/)
  const commands = tollgate.banner.slice(
    tollgate.banner.indexOf('  export TOLLGATE_URL'),
    tollgate.banner.indexOf('Your SDK'),
  )
  const curl = curlStandIn()
  try {
    const env = { ...process.env, PATH: `${curl.folder}:${process.env['PATH']}` }
    const { stdout } = await execute('sh', ['-c', commands], { cwd: join(tollgate.dataDir, '..'), env })
    assert.match(stdout, /^HTTP\/1\.1 200 OK\n/m)
  } finally {
    curl.dispose()
  }
})

test('commands trust the configured certificate, and without one say how to trust it', async () => {
  const args = ['keys', 'create', '--name', 'over-tls', '--url', tollgate.url, '--admin-key-file']
  const keyFile = join(tollgate.dataDir, 'admin-key')
  const made = await runTollgate([...args, keyFile], files)
  assert.equal(made.code, 0, made.stderr)
  const strange = await runTollgate([...args, keyFile])
  assert.equal(strange.code, 1)
  assert.match(
    strange.stderr,
    /certificate that is not trusted here: self-signed certificate.*NODE_EXTRA_CA_CERTS/,
  )
  const named = await runTollgate([...args, keyFile], { NODE_EXTRA_CA_CERTS: files.TOLLGATE_TLS_CERT })
  assert.equal(named.code, 0, named.stderr)
})

test('SIGHUP loads a new certificate for new connections, and keeps the old one if it is invalid', async () => {
  const first = await open()
  assert.equal(commonName(first), 'upstream.test')
  writePair(folder, otherPair)
  const taken = tollgate.printedToStderr(/cert\.pem","msg":"the new certificate of the file is in use"/)
  tollgate.signal('SIGHUP')
  await taken
  const second = await open()
  assert.equal(commonName(second), 'other.test')

  writeFileSync(files.TOLLGATE_TLS_KEY, localPair.key)
  const refused = tollgate.printedToStderr(
    /"reason":"TOLLGATE_TLS_KEY: .* is not the key.*the former certificate stays in use/,
  )
  tollgate.signal('SIGHUP')
  await refused
  const third = await open()
  assert.equal(commonName(third), 'other.test')
  for (const socket of [first, second, third]) {
    await askHealth(socket)
    socket.destroy()
  }
})
