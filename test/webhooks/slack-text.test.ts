import assert from 'node:assert/strict'
import { test } from 'node:test'
import { slackBody } from '../../src/webhooks/slack-text.ts'
import { WEBHOOK_EVENT_TYPES } from '../../src/webhooks/webhook-store.ts'

const key = { id: 'key_01JCN1ZV5M3T9Q8W7E6R5T4Y3X', name: 'ci-bot', expires_at: '2026-11-23T10:00:00.000Z' }
const budget = { threshold_percent: 80, resets_at: '2026-12-01T00:00:00.000Z', request_id: 'req_1' }

function textOf(type: string, data: string, dashboard: string | null = null): string {
  const payload = `{"type":"${type}","timestamp":"2026-11-16T19:00:00.000Z","data":${data}}`
  const body = slackBody(payload, dashboard === null ? null : new URL(dashboard))
  const { text, ...more } = JSON.parse(body) as { text: string }
  assert.deepEqual(more, {})
  return text
}

/** Amounts as the payload writes them, which no double comes near. */
function withAmounts(fields: object, amounts: string): string {
  return `${JSON.stringify(fields).slice(0, -1)},${amounts}}`
}

const amounts = '"spent_usd":40.120000001,"cap_usd":50,"held_usd":0'

test('a threshold is a sentence with the figures, the month and a link', () => {
  const data = withAmounts({ key, ...budget }, amounts)
  assert.equal(
    textOf('key.budget.threshold', data, 'https://tollgate.example.com/'),
    'Key *ci-bot* has passed 80 % of its budget for November: $40.120000001 of $50. The budget resets on 2026-12-01 (UTC). ' +
      '<https://tollgate.example.com/dashboard/keys/key_01JCN1ZV5M3T9Q8W7E6R5T4Y3X|Open in the dashboard>',
  )
  assert.ok(!textOf('key.budget.threshold', data).includes('<'))
})

test('what calls in flight hold is told where there is some; December ends in January', () => {
  const held = '"spent_usd":40,"cap_usd":50,"held_usd":3.5'
  const data = withAmounts({ key, ...budget, resets_at: '2027-01-01T00:00:00.000Z' }, held)
  assert.match(
    textOf('key.budget.threshold', data),
    /for December: \$40 of \$50, \$3\.5 more are held by calls in flight\./,
  )
  assert.match(
    textOf('key.budget.exceeded', data),
    /for December: \$40 of \$50\. Its calls are refused from now on\. The budget resets on 2027-01-01/,
  )
})

test('the name of a key becomes neither a link nor a mention', () => {
  const data = JSON.stringify({ key: { ...key, name: '<!channel> & <https://evil.example|x>' } })
  assert.equal(
    textOf('key.created', data),
    'Key *&lt;!channel&gt; &amp; &lt;https://evil.example|x&gt;* was created.',
  )
})

test('every event has a sentence of its own, without a value that is missing', () => {
  const webhook = { id: 'wh_1', url: 'https://a.example', disabled_reason: 'gone' }
  const everything = withAmounts(
    { key, old_key: { ...key, expires_at: null }, ...budget, expires_in_days: 7, model: 'gpt-9', webhook },
    `${amounts},"balance":{"balance_usd":-0.5,"held_usd":1}`,
  )
  const texts = [...WEBHOOK_EVENT_TYPES, 'webhook.test'].map((type) => textOf(type, everything))
  assert.equal(new Set(texts).size, texts.length)
  for (const [i, text] of texts.entries()) {
    assert.ok(!/undefined|null|NaN/.test(text), text)
    assert.notEqual(text, WEBHOOK_EVENT_TYPES[i])
  }
})
