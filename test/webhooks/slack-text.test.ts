import assert from 'node:assert/strict'
import { EVENT_TYPES } from '../../src/kernel/vocabulary.ts'
import { slackBody } from '../../src/webhooks/slack-text.ts'
import { test } from '../support/suite.ts'

const key = { id: 'key_01JCN1ZV5M3T9Q8W7E6R5T4Y3X', name: 'ci-bot', expires_at: '2026-11-23T10:00:00.000Z' }
const budget = { threshold_percent: 80, resets_at: '2026-12-01T00:00:00.000Z', request_id: 'req_1' }

function textOf(type: string, data: string, dashboard: string | null = null): string {
  const payload = `{"type":"${type}","timestamp":"2026-11-16T19:00:00.000Z","data":${data}}`
  const body = slackBody(payload, dashboard === null ? null : new URL(dashboard))
  const { text, ...more } = JSON.parse(body) as { text: string }
  assert.deepEqual(more, {})
  return text
}

/** A payload with amounts as written, which must not pass through a double. */
function withAmounts(fields: object, amounts: string): string {
  return `${JSON.stringify(fields).slice(0, -1)},${amounts}}`
}

const amounts = '"spent_usd":40.120000001,"cap_usd":50,"held_usd":0'

test('a crossing is a sentence with the figures, the month and a link', () => {
  const data = withAmounts({ key, ...budget }, amounts)
  assert.equal(
    textOf('key.budget.threshold', data, 'https://tollgate.example.com/'),
    'Key `ci-bot` has passed 80 % of its budget for November: $40.12 of $50. The budget resets on 2026-12-01 (UTC). ' +
      '<https://tollgate.example.com/dashboard/keys/key_01JCN1ZV5M3T9Q8W7E6R5T4Y3X|Open in the dashboard>',
  )
  assert.ok(!textOf('key.budget.threshold', data).includes('<'))
})

const names: readonly (readonly [what: string, name: string, shown: string])[] = [
  [
    'a link or a mention',
    '<!channel> & <https://evil.example|x>',
    '`&lt;!channel&gt; &amp; &lt;https://evil.example|x&gt;`',
  ],
  ['bold text or a bare link', 'm* *Renew*: https://evil.example', '`m* *Renew*: https://evil.example`'],
  ['lines of its own', 'a\r\n\n\u2028\t:siren: b\u0000\u0085c', '`a :siren: b c`'],
  ['more than code', '``` ` x', "`''' ' x`"],
  ['right-to-left text', 'a\u202e\u200bb', '`a b`'],
  ['a long message', '𝒜'.repeat(900), `\`${'𝒜'.repeat(99)}…\``],
  ['nothing at all', '\u200b\n', '`unknown`'],
]
for (const [what, name, shown] of names) {
  test(`a name chosen by a client does not become ${what}`, () => {
    assert.equal(
      textOf('key.created', JSON.stringify({ key: { ...key, name } })),
      `Key ${shown} was created.`,
    )
    const unpriced = textOf('call.unpriced', JSON.stringify({ model: name, request_id: 'req_1' }))
    assert.ok(
      unpriced.startsWith(
        `The model ${shown} has no price, so the gateway did not count the cost of the call \`req_1\``,
      ),
      unpriced,
    )
  })
}

test('every event has its own sentence without missing values', () => {
  const webhook = { id: 'wh_1', url: 'https://a.example', disabled_reason: 'gone' }
  const account = { id: 'acct_1', name: 'Acme' }
  const others = { ...budget, model: 'gpt-9', webhook, account, admin_key: { name: 'ops', role: 'admin' } }
  const figures = `${amounts},"balance":{"balance_usd":-0.5,"held_usd":1},"credit":{"amount_usd":5,"reason":"May"}`
  const ofKey = withAmounts({ key, old_key: { ...key, expires_at: null }, ...others }, figures)
  const ofAccount = withAmounts(others, figures)
  const texts = EVENT_TYPES.map((type) => textOf(type, type.startsWith('key.') ? ofKey : ofAccount))
  assert.equal(new Set(texts).size, texts.length)
  for (const [i, text] of texts.entries()) {
    assert.ok(!/undefined|null|NaN/.test(text), text)
    assert.notEqual(text, EVENT_TYPES[i])
  }
  assert.match(textOf('balance.exhausted', '{"balance":{"enforced":true}}'), /Calls are refused/)
  assert.doesNotMatch(textOf('balance.exhausted', '{"balance":{"enforced":false}}'), /refused/)
})
