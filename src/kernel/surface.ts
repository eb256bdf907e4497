/** The APIs that the gateway serves. Calls are recorded with these names, so a name never changes. */
export const SURFACE_NAMES = ['messages', 'chat'] as const

export type Surface = (typeof SURFACE_NAMES)[number]

/** An upstream of an account's own. The key is sealed for this account, surface and URL; null sends no credential. */
export interface OwnUpstream {
  readonly url: string
  /** In base 64. */
  readonly sealedKey: string | null
}

/** Upstream objects whose cost is known later. The names are stored with calls and never change. */
export type ObjectKind = 'message_batch' | 'batch' | 'response'
