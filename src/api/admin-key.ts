import { z } from 'zod'
import { ADMIN_ROLES } from '../kernel/vocabulary.ts'
import * as f from './fields.ts'

export const newAdminKeyFields = z.strictObject({
  name: f.textField('name', 120, { blank: false }).describe('The name of the key, for people.'),
  role: z
    .enum(ADMIN_ROLES, `role must be one of ${ADMIN_ROLES.join(', ')}.`)
    .describe('Operators act in all accounts; admins manage one account, viewers read it.'),
  account_id: z
    .string('account_id must be the id of an account.')
    .nullable()
    .optional()
    .describe(
      'The account of an admin or viewer, required for these roles. It may be left out with `account=`, and by admins, who ' +
        'create keys of their own account only.',
    ),
})

export const adminKeyListQuery = z.strictObject(f.paging('admin_key'))

export const adminKeySchema = z
  .object({
    id: f.idOf('admin_key'),
    object: z.literal('admin_key'),
    name: z.string(),
    role: z.enum(ADMIN_ROLES),
    account_id: f.idOf('account').nullable().describe('Null for operators.'),
    prefix: f.string('The first characters of the key; empty for one that was not created here.'),
    last4: z.string(),
    status: z.enum(['usable', 'revoked']),
    created_at: f.instant(),
    revoked_at: f.instant().nullable(),
    last_used_at: f.instant().nullable(),
  })
  .meta({ id: 'admin_key', description: 'An admin key. The secret is not part of it.' })
export type AdminKey = z.infer<typeof adminKeySchema>

export const createdAdminKeySchema = adminKeySchema
  .extend({ key: f.string('The secret, shown once.') })
  .meta({ id: 'created_admin_key', description: 'A new admin key with its secret.' })
export type CreatedAdminKey = z.infer<typeof createdAdminKeySchema>
