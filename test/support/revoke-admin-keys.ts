import { SYSTEM } from '../../src/kernel/actor.ts'
import type { Store } from '../../src/store/store.ts'

/** Revokes all admin keys except a new, unused one: the last operator key cannot be revoked. */
export async function revokeAdminKeys(store: Store, atMs: number): Promise<void> {
  const scope = { accountId: null, operators: true }
  const { rows } = await store.listAdminKeys({ scope, after: null, limit: 1_000 })
  const spare = {
    id: 'adm_spare',
    role: 'operator',
    accountId: null,
    name: 'spare',
    prefix: '',
    last4: '',
  } as const
  const digest = Buffer.alloc(32, 1)
  await store.createAdminKey({ ...spare, digest, createdAtMs: atMs, bootstrap: false }, SYSTEM)
  for (const { id } of rows) await store.revokeAdminKey(scope, id, SYSTEM, atMs)
}
