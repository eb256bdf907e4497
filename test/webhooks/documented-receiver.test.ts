import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { Secret } from '../../src/kernel/secret.ts'
import { createSecretSealer } from '../../src/keys/secrets.ts'
import { mintSigningSecret, signMessage } from '../../src/webhooks/deliver.ts'
import { root } from '../style/source-tree.ts'
import { readBlocks } from '../support/document-blocks.ts'
import { test } from '../support/suite.ts'
import { cleanEnvironment } from '../support/tollgate-process.ts'
import { until } from '../support/until.ts'

const blocks = readBlocks('docs/WEBHOOKS.md')
const codeIn = (wanted: string) => blocks.find(({ language }) => language === wanted)?.text ?? ''
const program = codeIn('js')

test('the documented receiver accepts only messages signed with its secret', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'tollgate-receiver-'))
  // The receiver listens on a path instead of a port, because a free path is easier to find.
  const socketPath = join(dir, 'receiver.sock')
  const secret = mintSigningSecret()
  const receiver = spawn(process.execPath, ['--input-type=module', '-e', program], {
    cwd: root,
    env: cleanEnvironment({ WEBHOOK_SECRET: secret.reveal(), PORT: socketPath }),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let printed = ''
  receiver.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    printed += chunk
  })

  const post = (body: string, headers: Record<string, string>) =>
    new Promise<number>((resolve, reject) => {
      const sent = request({ socketPath, method: 'POST', headers }, async (response) => {
        await text(response)
        resolve(response.statusCode ?? 0)
      })
      sent.on('error', reject).end(body)
    })

  try {
    const sealer = createSecretSealer(new Secret('a pepper of some length'), 'test')
    const target = { id: 'wh_1', secret: sealer.seal(secret, 'wh_1'), formerSecret: null }
    const body = '{"type":"key.created","data":{"key":{"name":"ci-bot"}}}'
    const headers = await signMessage({ id: 'evt_1', body }, target, sealer, Date.now())
    await until('the receiver listens', () =>
      post(body, {}).then(
        () => true,
        () => false,
      ),
    )
    assert.equal(await post(body, headers), 204)
    assert.equal(await post(body.replace('ci', 'di'), headers), 400)
    const old = await signMessage({ id: 'evt_1', body }, target, sealer, Date.now() - 600_000)
    assert.equal(await post(body, old), 400)
    await until('it has printed the event', async () => printed === 'key.created ci-bot\n')
  } finally {
    receiver.kill()
    rmSync(dir, { recursive: true, force: true })
  }
})
