import assert from 'node:assert/strict'
import { Webhook } from 'standardwebhooks'
import { Secret } from '../../src/kernel/secret.ts'
import { createSecretSealer } from '../../src/keys/secrets.ts'
import { mintSigningSecret, signMessage } from '../../src/webhooks/deliver.ts'
import { test } from '../support/suite.ts'

const sealer = createSecretSealer(new Secret('a pepper of some length'), 'test')
const message = { id: 'evt_1', body: '{"type":"webhook.test"}' }

test('a secret is whsec_ and the base64 of at least 24 random bytes', () => {
  const [one, other] = [mintSigningSecret().reveal(), mintSigningSecret().reveal()]
  assert.match(one, /^whsec_[A-Za-z0-9+/]+=*$/)
  assert.ok(Buffer.from(one.slice(6), 'base64').length >= 24)
  assert.notEqual(one, other)
})

test('a message verifies only with the secret of its endpoint', async () => {
  const secret = mintSigningSecret()
  const target = { id: 'wh_1', secret: sealer.seal(secret, 'wh_1'), formerSecret: null }
  const headers = await signMessage(message, target, sealer, Date.now())
  assert.deepEqual(new Webhook(secret.reveal()).verify(message.body, headers), { type: 'webhook.test' })
  assert.throws(() => new Webhook(mintSigningSecret().reveal()).verify(message.body, headers))
  assert.throws(() => new Webhook(secret.reveal()).verify(`${message.body} `, headers))
})

test('after a rotation a message verifies with both secrets', async () => {
  const [secret, former] = [mintSigningSecret(), mintSigningSecret()]
  const sealed = { secret: sealer.seal(secret, 'wh_1'), formerSecret: sealer.seal(former, 'wh_1') }
  const headers = await signMessage(message, { id: 'wh_1', ...sealed }, sealer, Date.now())
  assert.equal(headers['webhook-signature']?.split(' ').length, 2)
  for (const each of [secret, former]) new Webhook(each.reveal()).verify(message.body, headers)
})
