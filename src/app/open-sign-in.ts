import { randomUUID } from 'node:crypto'
import type { Exchange } from '../http/exchange.ts'
import { isSignInPath, type Target } from '../http/validate-head.ts'
import type { Credential } from '../keys/credential.ts'
import type { CreatedGateway, Opened } from './create-gateway.ts'

export interface OpenedSignIn {
  /** Null: the path is not of a sign-in. */
  endpoint(target: Target): ((exchange: Exchange, credential: Credential) => Promise<void>) | null
  /** Null: the provider has no page on which people sign out. */
  endSessionUrl(): Promise<string | null>
  /** Begins to ask the provider about people again. */
  start(): void
  stop(): Promise<void>
}

/** Null: people cannot sign in. Only a gateway that lets them in loads the library. */
export async function openSignIn(opened: Opened, created: CreatedGateway): Promise<OpenedSignIn | null> {
  const { config, installation, surroundings } = opened
  if (config.signIn === null) return null
  const { store, clock, digestKey, attemptSealer, refreshTokenSealer: tokenSealer } = installation
  const { gateway, nextUlid, isSecure } = created
  const { log } = surroundings
  const [{ IdentityProvider }, { SignInPages }, { resolveRules }, checking, devices, agents] =
    await Promise.all([
      import('../sign-in/identity-provider.ts'),
      import('../sign-in/sign-in-pages.ts'),
      import('../sign-in/resolve-rules.ts'),
      import('../sign-in/person-checks.ts'),
      import('../sign-in/device-sign-in.ts'),
      import('../sign-in/agent-endpoints.ts'),
    ])
  const settings = { ...config.signIn, rules: await resolveRules(config.signIn.rules, store, clock) }
  const provider = new IdentityProvider(settings, config.egress, clock)
  const recheckWaitingCalls = () => gateway.queues.signalAll()
  const shared = { settings, provider, store, clock, log, nextUlid, digestKey, tokenSealer, isSecure }
  const pages = new SignInPages({ ...shared, cookieSealer: attemptSealer })
  const checks = new checking.PersonChecks({ ...shared, node: randomUUID(), recheckWaitingCalls })
  const deviceSignIn = new devices.DeviceSignIn({
    ...shared,
    dashboardUrl: settings.dashboardUrl,
    deviceMs: settings.deviceMs,
    servicePrefix: config.prefix,
    checks,
    bodyTimes: gateway.reading.times,
    recheckWaitingCalls,
  })
  const agentEndpoints = new agents.AgentEndpoints(shared)
  return {
    endpoint(target) {
      if (isSignInPath(target.path)) return (exchange) => pages.answer(exchange, target)
      return deviceSignIn.endpoint(target.path) ?? agentEndpoints.endpoint(target.path)
    },
    endSessionUrl: () => provider.endSessionUrl(),
    start: () => checks.start(),
    stop: () => checks.stop(),
  }
}
