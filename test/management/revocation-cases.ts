import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestGateway } from '../support/gateway.ts'
import type { MovableClock } from './movable-clock.ts'
import { askOf, assertRefused, assertUnstored, NO_SUCH_KEY } from './own-client.ts'

/** Tests for both ways to revoke a key. */
export function testRevocation(
  gateway: TestGateway,
  clock: MovableClock,
  method: string,
  template: string,
): void {
  const ask = askOf(gateway)
  const path = (id: string) => template.replace('{id}', id)

  test(`${method} ${template} 200: revokes at once, and says when`, async () => {
    const { key, ...before } = await gateway.createKey('to be revoked', { monthly_budget_usd: 5 })
    const startedMs = clock.nowMs()
    const answer = await ask(method, path(before.id))
    assert.equal(answer.status, 200)
    assertUnstored(answer)
    const { revoked_at, ...rest } = answer.body
    const { revoked_at: never, ...was } = before as Record<string, unknown>
    assert.equal(never, null)
    assert.deepEqual(rest, { ...was, status: 'revoked' })
    const revokedMs = Date.parse(String(revoked_at))
    assert.ok(revokedMs >= startedMs && revokedMs <= clock.nowMs())

    const refused = await fetch(`${gateway.url}/v1/models`, { headers: { 'x-api-key': key } })
    assert.equal(refused.status, 401)
    assert.match(await refused.text(), /was revoked/)
  })

  test(`${method} ${template} 200: again it answers the same, with the time of the first`, async () => {
    const { id } = await gateway.createKey('twice')
    const first = await ask(method, path(id))
    clock.advance(1_000)
    assert.deepEqual((await ask(method, path(id))).body, first.body)
  })

  test(`${method} ${template} 200: an expired key stays expired`, async () => {
    const expires_at = new Date(clock.nowMs() + 10_000).toISOString()
    const { id } = await gateway.createKey('short', { expires_at })
    clock.advance(10_000)
    const { status, body } = await ask(method, path(id))
    assert.deepEqual([status, body['status'], body['revoked_at']], [200, 'expired', null])
  })

  for (const id of [NO_SUCH_KEY, 'key_none']) {
    test(`${method} ${template} 404: there is no key ${id}`, async () => {
      assertRefused(await ask(method, path(id)), 404, { code: 'not_found', message: /no key/ })
    })
  }

  test(`${method} ${template} 400: a query parameter, and the key stays`, async () => {
    const { id, key } = await gateway.createKey('stays')
    const answer = await ask(method, `${path(id)}?force=1`)
    assertRefused(answer, 400, { code: 'bad_request', param: 'force' })
    assert.equal((await ask('GET', '/v1/keys/me', { key })).status, 200)
  })
}
