import { z } from 'zod'
import { type Refusal, refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import { NANOS_PER_USD } from '../kernel/money.ts'
import type { KeyChanges, KeyLimits } from '../keys/key-store.ts'
import { MODEL_NAME_CHARS_MAX } from '../metering/request-facts.ts'
import { instantField } from './instant-field.ts'
import { textField } from './text-field.ts'
import { usdField } from './usd.ts'

const modelsRange = `1 to ${limits.allowedModelsMax}`

const keyFields = {
  name: textField('name', 120, { blank: false }).meta({ description: 'What people call this key.' }),
  monthly_budget_usd: usdField('monthly_budget_usd', { min: 0n, max: 1_000_000_000n * NANOS_PER_USD })
    .nullable()
    .optional()
    .meta({
      description:
        'The most this key may spend in a calendar month (UTC), in US dollars with at most 9 decimals. ' +
        'Null is no cap; 0 lets no billed call through.',
    }),
  allowed_models: z
    .array(
      // What no request can name must not be on a list as if it could.
      textField('Each of allowed_models', MODEL_NAME_CHARS_MAX, { unitsMax: MODEL_NAME_CHARS_MAX }),
      `allowed_models must be null or a list of ${modelsRange} model names.`,
    )
    .min(1, 'allowed_models must not be an empty list; null allows every model.')
    .max(limits.allowedModelsMax, `allowed_models must have at most ${limits.allowedModelsMax} entries.`)
    .refine((names) => new Set(names).size === names.length, 'allowed_models must not name a model twice.')
    .meta({ uniqueItems: true })
    .nullable()
    .optional()
    .meta({ description: 'The models this key may call, by their exact names. Null is every model.' }),
  log_requests: z
    .boolean('log_requests must be true or false.')
    .optional()
    .meta({ description: 'Whether the bodies of calls with this key are kept with their records.' }),
  expires_at: instantField('expires_at')
    .nullable()
    .optional()
    .meta({ description: 'When the key stops working: a future instant in UTC. Null is never.' }),
}

export const newKeyFields = z.strictObject(keyFields)

/** Any of them; null takes a limit away. */
export const keyEditFields = z.strictObject({ ...keyFields, name: keyFields.name.optional() })

type GivenFields = z.infer<typeof keyEditFields>

/** What a key may do about which nothing was said. */
export const NO_LIMITS: KeyLimits = {
  monthlyBudgetNanos: null,
  allowedModels: null,
  logRequests: false,
  expiresAtMs: null,
}

/** Only what was said: an edit must not touch the rest. */
export function keyChanges(fields: GivenFields): KeyChanges {
  return {
    ...(fields.name === undefined ? {} : { name: fields.name }),
    ...(fields.monthly_budget_usd === undefined ? {} : { monthlyBudgetNanos: fields.monthly_budget_usd }),
    ...(fields.allowed_models === undefined ? {} : { allowedModels: fields.allowed_models }),
    ...(fields.log_requests === undefined ? {} : { logRequests: fields.log_requests }),
    ...(fields.expires_at === undefined ? {} : { expiresAtMs: fields.expires_at }),
  }
}

/** A key that is born expired, or that an edit ends, is more likely a mistake; to end one there is revocation. */
export function refusePastExpiry(): Refusal {
  return refuse('bad_request', 'expires_at must be in the future.', { param: 'expires_at' })
}
