import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Api } from '../../src/cli/api.ts'
import type { Transport } from '../../src/cli/transport.ts'
import { StoreUnavailable } from '../../src/kernel/errors.ts'

/** An API that answers a top-up as `send` does. */
const topUp = (send: () => Promise<{ status: number; text: string }>, idempotencyKey?: string) => {
  const transport = {
    place: 'the books',
    send: async () => ({ ...(await send()), headers: new Headers() }),
  } as unknown as Transport
  const asked = idempotencyKey === undefined ? {} : { idempotencyKey }
  return new Api(transport, {}).askText('POST', '/gateway/v1/credits', asked)
}

const refusal = (code: string) => JSON.stringify({ error: { message: `It is ${code}.`, code, param: null } })
const AGAIN = /It may have been done\. Repeat the command with --idempotency-key once-1: it is done once\.$/

test('a command of which nobody knows whether it was done says how to repeat it, so that it is done once', async () => {
  const lost = () => Promise.reject(new StoreUnavailable('the connection broke'))
  await assert.rejects(
    topUp(lost, 'once-1'),
    /^Error: .*does not answer: the connection broke\. It may have been done/,
  )
  await assert.rejects(topUp(lost, 'once-1'), { message: AGAIN })
  const away = async () => ({ status: 503, text: refusal('store_unavailable') })
  await assert.rejects(topUp(away, 'once-1'), { message: AGAIN })
})

test('a command that was refused, or that nothing depends on being done once, says no such thing', async () => {
  const bad = async () => ({ status: 400, text: refusal('bad_request') })
  await assert.rejects(topUp(bad, 'once-1'), { message: 'It is bad_request.' })
  const away = async () => ({ status: 503, text: refusal('store_unavailable') })
  await assert.rejects(topUp(away), { message: 'It is store_unavailable.' })
})
