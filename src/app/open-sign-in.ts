import type { Exchange } from '../http/exchange.ts'
import type { Target } from '../http/validate-head.ts'
import type { CreatedGateway, Opened } from './create-gateway.ts'

export interface OpenedSignIn {
  answer(exchange: Exchange, target: Target): Promise<void>
  /** Null: the provider has no page on which people sign out. */
  endSessionUrl(): Promise<string | null>
}

/** Null: people cannot sign in. Only a gateway that lets them in loads the library. */
export async function openSignIn(opened: Opened, created: CreatedGateway): Promise<OpenedSignIn | null> {
  const { config, installation, surroundings } = opened
  if (config.signIn === null) return null
  const { store, clock, digestKey, attemptSealer, refreshTokenSealer } = installation
  const [{ IdentityProvider }, { SignInPages }, { resolveRules }] = await Promise.all([
    import('../sign-in/identity-provider.ts'),
    import('../sign-in/sign-in-pages.ts'),
    import('../sign-in/resolve-rules.ts'),
  ])
  const settings = { ...config.signIn, rules: await resolveRules(config.signIn.rules, store, clock) }
  const provider = new IdentityProvider(settings, config.egress, clock)
  const pages = new SignInPages({
    settings,
    provider,
    store,
    clock,
    digestKey,
    log: surroundings.log,
    cookieSealer: attemptSealer,
    tokenSealer: refreshTokenSealer,
    nextUlid: created.nextUlid,
    isSecure: created.isSecure,
  })
  return {
    answer: (exchange, target) => pages.answer(exchange, target),
    endSessionUrl: () => provider.endSessionUrl(),
  }
}
