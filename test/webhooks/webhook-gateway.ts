import { Webhook } from 'standardwebhooks'
import { type BillingBench, startBillingBench } from '../billing/bench-of-one.ts'
import { assertPayload } from '../management/own-client.ts'
import type { GatewayOptions } from '../support/gateway.ts'
import { type ReceivedMessage, WebhookReceiver } from '../support/webhook-receiver.ts'

export const WEBHOOKS = '/gateway/v1/webhooks'

export interface Subscription {
  readonly id: string
  readonly secret: string
  readonly path: string
  readonly receiver: WebhookReceiver
}

export interface Delivery {
  readonly id: string
  readonly event_id: string
  readonly event_type: string
  readonly status: string
  readonly attempts: number
  readonly response_status: number | null
  readonly response_body: string | null
  readonly error: string | null
  readonly last_attempt_at: string
  readonly next_attempt_at: string | null
}

export class WebhookGateway {
  readonly bench: BillingBench
  readonly #receivers: WebhookReceiver[] = []

  private constructor(bench: BillingBench) {
    this.bench = bench
  }

  static async start({ settings, ...options }: GatewayOptions = {}): Promise<WebhookGateway> {
    const permissive = { webhooksAllowPrivate: true, ...settings }
    return new WebhookGateway(await startBillingBench({ ...options, settings: permissive }))
  }

  get gateway() {
    return this.bench.gateway
  }

  async subscribe(events: readonly string[] = ['*'], fields: object = {}): Promise<Subscription> {
    const receiver = await WebhookReceiver.start()
    this.#receivers.push(receiver)
    const made = await this.gateway.manage('POST', WEBHOOKS, { url: receiver.url, events, ...fields })
    const { id, secret } = made as { id: string; secret: string }
    return { id, secret, path: `${WEBHOOKS}/${id}`, receiver }
  }

  async deliveries({ path }: Subscription): Promise<readonly Delivery[]> {
    const { data } = await this.gateway.manage('GET', `${path}/deliveries`)
    return data as Delivery[]
  }

  /** Makes the gateway claim due deliveries now, by an update that changes nothing. */
  async look({ path }: Subscription): Promise<void> {
    await this.gateway.manage('PATCH', path, {})
  }

  async unsubscribe({ path }: Pick<Subscription, 'path'>): Promise<void> {
    await fetch(this.gateway.url + path, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${this.gateway.adminKey}` },
    })
  }

  async close(): Promise<void> {
    for (const receiver of this.#receivers) await receiver.close()
    await this.bench.close()
    const messages = this.#receivers.flatMap((receiver) => receiver.messages)
    for (const { json } of messages) if (json['type'] !== undefined) assertPayload(json)
  }
}

/** Fails unless the message was signed with this secret. */
export function verified({ body, headers }: ReceivedMessage, secret: string): Record<string, unknown> {
  return new Webhook(secret).verify(body, headers as Record<string, string>) as Record<string, unknown>
}

export const idOf = ({ headers }: ReceivedMessage): string => String(headers['webhook-id'])

export const dataOf = ({ json }: ReceivedMessage): Record<string, unknown> =>
  json['data'] as Record<string, unknown>
