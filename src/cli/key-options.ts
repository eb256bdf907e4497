import { rawNumber } from '../kernel/money.ts'
import { UsageError } from './run-command.ts'

/** The options that say what a key may do. */
export const LIMIT_OPTIONS = {
  name: { type: 'string' },
  'monthly-budget': { type: 'string' },
  'allow-model': { type: 'string', multiple: true },
  'all-models': { type: 'boolean' },
  'log-requests': { type: 'boolean' },
  'no-log-requests': { type: 'boolean' },
  'expires-at': { type: 'string' },
} as const

export const LIMIT_NAMES = {
  name: '--name',
  monthly_budget_usd: '--monthly-budget',
  allowed_models: '--allow-model',
  log_requests: '--log-requests',
  expires_at: '--expires-at',
  'Idempotency-Key': '--idempotency-key',
}

export const LIMIT_HELP = `  --monthly-budget <usd>    the most it may spend in a calendar month (UTC), such as 50 or 0.25; none for no cap
  --allow-model <model>     a model it may call, by its exact name; may be given several times
  --all-models              it may call every model
  --log-requests            keep the bodies of its calls; --no-log-requests to keep none
  --expires-at <instant>    when it stops working, in UTC, such as 2030-01-31T00:00:00Z; never for no end
`

interface LimitValues {
  readonly name?: string | undefined
  readonly 'monthly-budget'?: string | undefined
  readonly 'allow-model'?: readonly string[] | undefined
  readonly 'all-models'?: boolean | undefined
  readonly 'log-requests'?: boolean | undefined
  readonly 'no-log-requests'?: boolean | undefined
  readonly 'expires-at'?: string | undefined
}

/** The fields of the API: only those that were said. What is not good, the API says of them. */
export function limitFields(values: LimitValues): Record<string, unknown> {
  const budget = values['monthly-budget']
  const models = values['allow-model']
  const expires = values['expires-at']
  const logs = values['log-requests'] === true
  if (models !== undefined && values['all-models'] === true)
    throw new UsageError('--allow-model and --all-models cannot be used together')
  if (logs && values['no-log-requests'] === true)
    throw new UsageError('--log-requests and --no-log-requests cannot be used together')
  return {
    ...(values.name === undefined ? {} : { name: values.name }),
    ...(budget === undefined ? {} : { monthly_budget_usd: budget === 'none' ? null : amountField(budget) }),
    ...(models === undefined ? {} : { allowed_models: models }),
    ...(values['all-models'] === true ? { allowed_models: null } : {}),
    ...(logs || values['no-log-requests'] === true ? { log_requests: logs } : {}),
    ...(expires === undefined ? {} : { expires_at: expires === 'never' ? null : expires }),
  }
}

/** An amount to the digit as it was typed. What is no number is sent as it is, for the API to say so. */
export function amountField(text: string): unknown {
  return /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/.test(text) ? rawNumber(text) : text
}
