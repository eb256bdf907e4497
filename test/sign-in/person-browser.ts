import assert from 'node:assert/strict'
import type { TestGateway } from '../support/gateway.ts'

/** The public address of the gateway. The browser finds the gateway of the test there. */
export const DASHBOARD_URL = 'https://gate.test'

export interface Seen {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** A browser: it keeps cookies of the gateway, and follows no redirect by itself. */
export class PersonBrowser {
  readonly cookies = new Map<string, string>()
  readonly #gateway: Pick<TestGateway, 'url'>

  constructor(gateway: Pick<TestGateway, 'url'>) {
    this.#gateway = gateway
  }

  async open(
    address: string,
    method = 'GET',
    headers: Readonly<Record<string, string>> = {},
    body?: object,
  ): Promise<Seen> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(this.#gateway.url + address.replace(DASHBOARD_URL, ''), {
      method,
      redirect: 'manual',
      headers: { ...(cookie === '' ? {} : { cookie }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^(\w+)=([^;]*)/.exec(line) ?? []
      if (value === '') this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    return { status: response.status, headers: response.headers, text: await response.text() }
  }

  /** Begins a sign-in. Returns the address of the provider's page. */
  async begin(returnTo?: string): Promise<string> {
    const query = returnTo === undefined ? '' : `?return_to=${encodeURIComponent(returnTo)}`
    const { status, headers, text } = await this.open(`/gateway/sign-in${query}`)
    assert.equal(status, 302, text)
    return headers.get('location') ?? ''
  }

  async session(): Promise<Record<string, unknown> | null> {
    const { status, text } = await this.open('/gateway/v1/session')
    return status === 200 ? (JSON.parse(text) as Record<string, unknown>) : null
  }
}
