import { adminKeyListQuery, newAdminKeyFields } from '../api/admin-key.ts'
import { adminKeyObject } from '../api/objects.ts'
import { mintKey, shownParts } from '../keys/key-format.ts'
import type { AdminScope } from '../keys/key-store.ts'
import { DEFAULT_ACCOUNT, MISSING_ACCOUNT } from './resolve-account.ts'
import { defineRoute, invalid, type OwnRequest, pageObject, refused } from './route.ts'

/** The admin keys that a request lists. Operators see operator keys in the account `default`. */
function scopeOf({ role }: OwnRequest, accountId: string | null): AdminScope {
  return { accountId, operators: role === 'operator' && accountId === DEFAULT_ACCOUNT }
}

export const createAdminKey = defineRoute({
  summary: 'Create an admin key',
  description:
    'Only this answer has the secret. Only operators create operator keys. For the other roles an operator names the account ' +
    'in `account_id`, or with `account=`.',
  body: newAdminKeyFields,
  status: 201,
  async handle(request, { store, nextUlid, digestKey, servicePrefix }) {
    const { name, role, account_id: named = null } = request.body
    if (role === 'operator' && request.role !== 'operator')
      return refused(
        'insufficient_role',
        'Only an operator can create operator keys. Choose the role admin or viewer.',
        'role',
      )
    if (role === 'operator' && named !== null)
      return invalid('account_id', 'An operator key does not belong to an account. Leave account_id out.')
    if (role !== 'operator' && named === null && !request.isAccountNamed)
      return invalid(
        'account_id',
        `account_id is required for the role ${role}. Send the id of an account, such as default.`,
      )
    const isForeign = request.role !== 'operator' && named !== null && named !== request.accountId
    const accountId = role === 'operator' ? null : (named ?? request.accountId)
    if (isForeign || (accountId !== null && !(await store.hasAccount(accountId)))) return MISSING_ACCOUNT
    const secret = mintKey(servicePrefix, 'admin')
    const key = {
      id: `adm_${nextUlid()}`,
      name,
      role,
      accountId,
      digest: digestKey(secret.reveal()),
      ...shownParts(secret, servicePrefix),
      createdAtMs: request.atMs,
      bootstrap: false,
    }
    const record = await store.createAdminKey(key, request.actor)
    return { ...adminKeyObject(record), key: secret.reveal() }
  },
})

export const listAdminKeys = defineRoute({
  summary: 'List admin keys, newest first',
  description: 'Operator keys are listed in the account `default`, to operators only.',
  query: adminKeyListQuery,
  async handle(request, { store }) {
    const { after = null, limit } = request.query
    const scope = scopeOf(request, request.listedAccountId)
    return pageObject(await store.listAdminKeys({ scope, after, limit }), adminKeyObject)
  },
})

export const revokeAdminKey = defineRoute({
  summary: 'Revoke an admin key',
  description: 'Immediate and final; ends its sessions too. The last operator key cannot be revoked.',
  async handle(request, { store }) {
    const { id, accountId, actor, atMs } = request
    const result = await store.revokeAdminKey(scopeOf(request, accountId), id, actor, atMs)
    if (result.kind === 'none') return null
    if (result.kind === 'revoked') return adminKeyObject(result.key)
    const { code, message } = NOT_REVOKED[result.kind]
    return refused(code, message)
  },
})

const NOT_REVOKED = {
  last_operator: {
    code: 'last_operator_key',
    message: 'This is the last operator key. Create another one first.',
  },
  configured: {
    code: 'conflict',
    message: 'This is the key of TOLLGATE_ADMIN_KEY. Change or remove the variable and restart to revoke it.',
  },
} as const
