// An identity provider on this machine, to try how people sign in (docs/PEOPLE.md). It accepts every name and password:
// never use it for real people. It needs the package oidc-provider, which a clone of Tollgate has after `npm ci`.
//
//   node examples/local-identity-provider.mjs grace      grace is in the group "platform", everybody in "developers"

import { generateKeyPairSync } from 'node:crypto'
import { Provider } from 'oidc-provider'

const issuer = process.env.ISSUER ?? 'http://localhost:9090'
const dashboard = process.env.DASHBOARD_URL ?? 'http://localhost:8787'
const platform = new Set(process.argv.slice(2))

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: 'tollgate',
      client_secret: 'trial-secret-of-this-machine',
      redirect_uris: [`${dashboard}/gateway/sign-in/callback`],
      post_logout_redirect_uris: [`${dashboard}/dashboard`],
    },
  ],
  jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256' }] },
  cookies: { keys: ['of a trial'] },
  claims: { openid: ['sub', 'groups'], email: ['email', 'email_verified'], profile: ['name'] },
  findAccount: (_, name) => ({
    accountId: name,
    claims: () => ({
      sub: name,
      name,
      email: `${name}@example.com`,
      email_verified: true,
      groups: platform.has(name) ? ['platform', 'developers'] : ['developers'],
    }),
  }),
})

provider.listen(new URL(issuer).port, '127.0.0.1', () => console.log(`The provider is at ${issuer}`))
