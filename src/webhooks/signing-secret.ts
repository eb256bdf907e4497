import { randomBytes } from 'node:crypto'
import { Secret } from '../kernel/secret.ts'
import type { SecretSealer } from '../keys/sealed-secret.ts'
import type { DeliveryTarget } from './webhook-store.ts'

/** Standard Webhooks asks for 24 to 64 bytes. */
const SECRET_BYTES = 32

/** The secret that signs an endpoint's messages, in the form that the libraries of Standard Webhooks take. */
export function mintSigningSecret(): Secret {
  return new Secret(`whsec_${randomBytes(SECRET_BYTES).toString('base64')}`)
}

export interface WebhookMessage {
  /** The id of the event: the same at every try, so that a receiver recognises a message that it had already. */
  readonly id: string
  readonly body: string
}

/** The headers of a message. For a day after a rotation the former secret signs too, so a receiver may have either secret. */
export async function signMessage(
  { id, body }: WebhookMessage,
  target: Pick<DeliveryTarget, 'id' | 'secret' | 'formerSecrets'>,
  sealer: SecretSealer,
  nowMs: number,
): Promise<Record<string, string>> {
  const { Webhook } = await import('standardwebhooks')
  const signatures = [target.secret, ...target.formerSecrets].map((each) => {
    const secret = sealer.open(each, target.id)
    return new Webhook(secret.reveal()).sign(id, new Date(nowMs), body)
  })
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(nowMs / 1_000)),
    'webhook-signature': signatures.join(' '),
  }
}
