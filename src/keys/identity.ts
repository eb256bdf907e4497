import { type Refusal, refuse } from '../kernel/errors.ts'

/** What a request says about who sends it, by form alone. Whether the key is in force, the store decides. */
export type Identity =
  | { readonly kind: 'key'; readonly digest: Buffer }
  /** A browser asking before the real request. It never carries a credential. */
  | { readonly kind: 'preflight' }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** Why the store does not accept a key. */
export type KeyRefusal = 'unknown_key' | 'revoked_key' | 'expired_key'

const MESSAGES: Readonly<Record<KeyRefusal | 'admin_key', string>> = {
  unknown_key: 'This is not an API key of this gateway.',
  revoked_key: 'This API key was revoked.',
  expired_key: 'This API key has expired.',
  admin_key:
    'This is an admin key: it manages API keys and cannot call models. Create one with POST /v1/keys.',
}

/** The holder of a key may learn that it was revoked or has expired, and nobody learns anything of other keys. */
export function refuseKey(reason: KeyRefusal | 'admin_key'): Refusal {
  const stranger = reason === 'unknown_key' || reason === 'admin_key'
  return refuse('invalid_api_key', MESSAGES[reason], { stranger })
}
