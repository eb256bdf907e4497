import assert from 'node:assert/strict'
import { payloadOf } from '../../src/webhooks/deliver.ts'
import { readEventData } from '../../src/webhooks/webhook-store.ts'
import { test } from '../support/suite.ts'

const account =
  '{"id":"acct_1","upstreams":{"chat":{"url":"http://10.0.0.1"}},"metadata":{"margin":"40%"},"balance_usd":12345678.123456789}'
const changes =
  '{"metadata":{"old":{},"new":{"margin":"40%"}},"upstreams.chat.key":{"old":null,"new":null},"name":{"old":"a","new":"b"}}'
const event = {
  id: 'evt_1',
  accountId: 'acct_1',
  type: 'account.updated',
  createdAtMs: Date.UTC(2026, 10, 1),
  actor: { kind: 'system', id: null, name: null },
  dataJson: `{"account":${account},"changes":${changes}}`,
} as const

test("an account's webhook does not receive its upstreams and metadata, which only operators see", () => {
  assert.equal(
    payloadOf(event),
    '{"type":"account.updated","timestamp":"2026-11-01T00:00:00.000Z","account_id":"acct_1",' +
      '"actor":{"kind":"system","id":null,"name":null},' +
      '"data":{"account":{"id":"acct_1","balance_usd":12345678.123456789},"changes":{"name":{"old":"a","new":"b"}}}}',
  )
  assert.equal(JSON.stringify(readEventData(event, true)), event.dataJson)
})

test("an account's webhook receives the metadata of its keys", () => {
  const dataJson = '{"key":{"metadata":{"team":"web"}}}'
  assert.equal(JSON.stringify(readEventData({ ...event, type: 'key.created', dataJson }, false)), dataJson)
})
