import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

type Json = Readonly<Record<string, unknown>>

const keyPair = () => generateKeyPairSync('rsa', { modulusLength: 2048 })
const ours = keyPair()
const foreign = keyPair()

/** How the provider misbehaves. */
export interface Part {
  /** Claims of the ID token, over the right ones. An undefined claim is left out. */
  readonly claims?: Json
  readonly signature?: 'right' | 'foreign' | 'none'
  readonly userInfo?: Json
  readonly refreshToken?: string
  /** The error of a refresh. Without it, the claims are confirmed. */
  readonly refreshError?: string
  /** Over the right discovery document. */
  readonly discovery?: Json
  /** The path that answers 500. */
  readonly broken?: string
  /** The path that never answers. */
  readonly silent?: string
}

/** An OpenID Connect provider that plays a part, for answers that a certified one never gives. */
export class PlayedProvider {
  part: Part = {}
  /** The requests, as method and path. */
  readonly asked: string[] = []
  readonly #server: Server
  readonly #codes = new Map<string, { readonly nonce: string; readonly challenge: string }>()

  private constructor(server: Server) {
    this.#server = server
  }

  static async start(): Promise<PlayedProvider> {
    const provider: PlayedProvider = new PlayedProvider(
      createServer((request, response) => void provider.#answer(request, response)),
    )
    await new Promise<void>((resolve) => provider.#server.listen(0, '127.0.0.1', resolve))
    return provider
  }

  get issuer(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  /** What the provider's page does after a person has signed in: the address to which it sends the browser. */
  approve(authorizationUrl: string): string {
    const asked = new URL(authorizationUrl).searchParams
    const code = randomBytes(16).toString('hex')
    this.#codes.set(code, { nonce: asked.get('nonce') ?? '', challenge: asked.get('code_challenge') ?? '' })
    const back = new URL(asked.get('redirect_uri') ?? '')
    back.searchParams.set('code', code)
    back.searchParams.set('state', asked.get('state') ?? '')
    return back.href
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', this.issuer)
    this.asked.push(`${request.method} ${pathname}`)
    const body = new URLSearchParams(await text(request))
    if (this.part.silent === pathname) return
    const [status, json] = this.part.broken === pathname ? [500, {}] : this.#reply(pathname, body)
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json))
  }

  #reply(path: string, body: URLSearchParams): readonly [number, Json] {
    if (path === '/.well-known/openid-configuration') return [200, this.#discovery()]
    if (path === '/keys')
      return [200, { keys: [{ ...ours.publicKey.export({ format: 'jwk' }), kid: 'ours' }] }]
    if (path === '/me') return [200, this.part.userInfo ?? {}]
    if (path === '/token') return this.#exchange(body)
    return [404, {}]
  }

  #discovery(): Json {
    const { issuer } = this
    return {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/keys`,
      userinfo_endpoint: `${issuer}/me`,
      end_session_endpoint: `${issuer}/end`,
      response_types_supported: ['code'],
      id_token_signing_alg_values_supported: ['RS256', 'none'],
      ...this.part.discovery,
    }
  }

  #exchange(body: URLSearchParams): readonly [number, Json] {
    if (body.get('grant_type') === 'refresh_token') return this.#refresh()
    const given = body.get('code') ?? ''
    const code = this.#codes.get(given)
    this.#codes.delete(given)
    const challenge = createHash('sha256')
      .update(body.get('code_verifier') ?? '')
      .digest('base64url')
    if (code === undefined || code.challenge !== challenge) return [400, { error: 'invalid_grant' }]
    return [200, this.#tokens(code.nonce)]
  }

  #refresh(): readonly [number, Json] {
    const { refreshError: error } = this.part
    return error === undefined ? [200, this.#tokens()] : [400, { error }]
  }

  #tokens(nonce?: string): Json {
    const token = { access_token: 'access', token_type: 'Bearer', id_token: this.#idToken(nonce) }
    const { refreshToken } = this.part
    return refreshToken === undefined ? token : { ...token, refresh_token: refreshToken }
  }

  #idToken(nonce: string | undefined): string {
    const { claims, signature = 'right' } = this.part
    const now = Math.floor(Date.now() / 1_000)
    const right = { iss: this.issuer, sub: 'ada', aud: 'tollgate', iat: now, exp: now + 300, nonce }
    const person = { email: 'ada@example.com', email_verified: true, name: 'Ada', groups: ['developers'] }
    const header = signature === 'none' ? { alg: 'none' } : { alg: 'RS256', kid: 'ours' }
    const encode = (part: Json) => Buffer.from(JSON.stringify(part)).toString('base64url')
    const signed = `${encode(header)}.${encode({ ...right, ...person, ...claims })}`
    if (signature === 'none') return `${signed}.`
    const { privateKey } = signature === 'right' ? ours : foreign
    return `${signed}.${sign('sha256', Buffer.from(signed), privateKey).toString('base64url')}`
  }
}
