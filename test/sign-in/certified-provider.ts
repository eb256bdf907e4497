import { generateKeyPairSync } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'
import { DASHBOARD_URL } from './person-browser.ts'

export interface Employee {
  readonly name: string
  readonly email: string
  readonly email_verified: boolean
  readonly groups: readonly string[]
}

export const CLIENT = { id: 'tollgate', secret: 'the secret of the gateway' } as const

/** A certified provider, in this process. Whoever comes to its page is signed in as `person`. */
export class CertifiedProvider {
  readonly employees = new Map<string, Employee>()
  person = ''
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
  }

  static async start(dashboardUrl = DASHBOARD_URL): Promise<CertifiedProvider> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const provider = new CertifiedProvider(server)
    provider.#serve(dashboardUrl)
    return provider
  }

  get issuer(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  /** Follows the provider's redirects until they lead back. Returns the address of the callback. */
  async visit(authorizationUrl: string): Promise<string> {
    const cookies = new Map<string, string>()
    let address = authorizationUrl
    while (address.startsWith(this.issuer)) {
      const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
      const response = await fetch(address, { redirect: 'manual', headers: { cookie } })
      for (const line of response.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
        cookies.set(name, value)
      }
      const next = response.headers.get('location')
      if (next === null) throw new Error(`${address}: ${response.status} ${await response.text()}`)
      address = new URL(next, address).href
    }
    return address
  }

  #serve(dashboardUrl: string): void {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const oidc = new Provider(this.issuer, {
      clients: [
        {
          client_id: CLIENT.id,
          client_secret: CLIENT.secret,
          redirect_uris: [`${dashboardUrl}/gateway/sign-in/callback`],
          post_logout_redirect_uris: [`${dashboardUrl}/dashboard`],
          response_types: ['code'],
        },
      ],
      jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256' }] },
      cookies: { keys: ['of this test'] },
      pkce: { required: () => true },
      claims: { openid: ['sub', 'groups'], email: ['email', 'email_verified'], profile: ['name'] },
      features: { devInteractions: { enabled: false } },
      interactions: { url: () => '/here' },
      findAccount: (_: unknown, id: string) => ({
        accountId: id,
        claims: () => ({ sub: id, ...this.employees.get(id) }),
      }),
    })
    const callback = oidc.callback()
    this.#server.on('request', async (request, response) => {
      if (request.url !== '/here') return callback(request, response)
      const grant = new oidc.Grant({ accountId: this.person, clientId: CLIENT.id })
      grant.addOIDCScope('openid email profile')
      const consent = { grantId: await grant.save() }
      await oidc.interactionFinished(request, response, { login: { accountId: this.person }, consent })
    })
  }
}
