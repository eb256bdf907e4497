import { z } from 'zod'
import { NANOS_PER_USD } from '../kernel/money.ts'
import { ACCOUNT_STATUSES } from '../kernel/vocabulary.ts'
import * as f from './fields.ts'

const urlExpected = 'url must be an http: or https: URL without user, query or fragment.'

const upstreamField = (surface: string) =>
  z
    .strictObject(
      {
        url: z
          .string(urlExpected)
          .refine((text) => {
            const url = text.length <= 2_048 ? URL.parse(text) : null
            const isPlain = url !== null && `${url.username}${url.password}${url.search}${url.hash}` === ''
            return url !== null && isPlain && /^https?:$/.test(url.protocol)
          }, urlExpected)
          .optional()
          .describe("Absent: the installation's URL."),
        key: z
          .string('key must be a credential of the upstream.')
          .regex(/^[\x21-\x7e]{1,4096}$/, 'key must be 1 to 4096 printable ASCII characters without spaces.')
          .nullable()
          .optional()
          .describe(
            'The key for this upstream, which is never shown again. A url that differs from the stored one needs it. Null: no credential is sent.',
          ),
      },
      `upstreams.${surface} must be null or an object with url and key.`,
    )
    .nullable()
    .optional()

const accountFields = {
  name: f.textField('name', 120, { blank: false }).describe('The name of the account.'),
  monthly_budget_usd: f.budgetField(
    'monthly_budget_usd',
    'Maximum spend of all keys of the account per calendar month (UTC). Null: no budget.',
  ),
  credit_enforced: f.flagField(
    'credit_enforced',
    'Whether calls are refused once the credit is used up. Adding credit does not turn it on.',
  ),
  force: f.flagField('force', 'Turns enforcement on even if the balance is 0 or less.'),
  discount: f
    .usdField('discount', { min: 0n, max: NANOS_PER_USD })
    .nullable()
    .optional()
    .describe("A fraction of the list price, for all models. Null: the installation's discount."),
  upstreams: z
    .strictObject(
      { messages: upstreamField('messages'), chat: upstreamField('chat') },
      'upstreams must be an object.',
    )
    .optional()
    .describe(
      'The upstreams of the account, by surface. An omitted surface is unchanged; null removes its upstream.',
    ),
  metadata: f.metadataField().optional().describe('Pairs of strings. PATCH replaces all of them.'),
}

export const newAccountFields = z.strictObject(accountFields)

export const accountEditFields = z.strictObject({ ...accountFields, name: accountFields.name.optional() })
export type AccountEditFields = z.infer<typeof accountEditFields>

export const accountListQuery = z.strictObject({
  ...f.paging('account'),
  status: f.choiceParameter('status', ACCOUNT_STATUSES, 'Only accounts with this status.'),
  search: f
    .textField('search', 200)
    .optional()
    .describe('Part of a name (case-insensitive) or of an id; or a pair such as `metadata.team:web`.'),
})

const upstream = z
  .object({ url: z.string(), has_key: f.flag('The key itself is never shown.') })
  .nullable()
  .describe("Null: the installation's upstream.")

export const accountSchema = z
  .object({
    id: f.idOf('account'),
    object: z.literal('account'),
    name: z.string(),
    status: z.enum(ACCOUNT_STATUSES).describe('Every call of a suspended account is refused.'),
    monthly_budget_usd: f.usdAmount('The budget of each month. Null: none.').nullable(),
    month_spend_usd: f.usdAmount('The cost of the calls admitted in this month (UTC).'),
    month_held_usd: f.usdAmount('The part of the budget that calls in flight have reserved.'),
    budget_resets_at: f.instant().describe('When the next month begins.'),
    credit_enforced: f.flag('Whether calls are refused once the credit is used up.'),
    balance_usd: f.usdAmount('Credit minus charges; may be negative.'),
    discount: z.number().nullable().describe("A fraction of the list price; null: the installation's."),
    upstreams: z.object({ messages: upstream, chat: upstream }),
    metadata: z.record(z.string(), z.string()),
    created_at: f.instant(),
  })
  .meta({
    id: 'account',
    description: 'A customer or a team. Keys, credit, webhooks and usage belong to an account.',
  })
export type Account = z.infer<typeof accountSchema>

export const ownAccountSchema = accountSchema
  .omit({ upstreams: true, metadata: true })
  .meta({ id: 'own_account', description: 'The account of the key: its spend, budget and credit.' })

export const accountListSchema = f.listOf(accountSchema).extend({
  total: z
    .object({
      month_spend_usd: f.usdAmount('The sum over the accounts.'),
      month_held_usd: f.usdAmount('The sum over the accounts.'),
      balance_usd: f.usdAmount('The sum over the accounts.'),
    })
    .describe('Sums over all accounts that match, not only those of this page.'),
})
