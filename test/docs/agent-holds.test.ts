import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createPricer } from '../../src/gateway/pricer.ts'
import { modelAsked } from '../../src/metering/request-facts.ts'
import { NO_DISCOUNT } from '../../src/pricing/discount.ts'
import { findEndpoint } from '../../src/providers/find-endpoint.ts'
import { shippedBook } from '../pricing/worked-example.ts'
import { factsOf } from '../providers/request-facts-of.ts'

const page = readFileSync(new URL('../../docs/CODING-AGENTS.md', import.meta.url), 'utf8')
const rows = Array.from(
  page.matchAll(/^\| `([^`]+)` \| (?:`max_tokens` ([\d,]+)|no limit, as Codex) \| ([\d.]+) \|$/gm),
  ([, model = '', tokens, usd = '']) => ({ model, maxTokens: tokens?.replaceAll(',', ''), usd }),
)

const pricer = createPricer(shippedBook, {
  discount: NO_DISCOUNT,
  unpriced: 'auto',
  chatDefaultTier: null,
  chatRegional: false,
})

/** A request of an agent: a tool of its own and a hundred thousand bytes of what was said before. */
function requestOf(model: string, maxTokens: string | undefined) {
  const said = [{ role: 'user', content: 'x'.repeat(100_000) }]
  const schema = { type: 'object', properties: {} }
  return maxTokens === undefined
    ? {
        surface: 'chat' as const,
        path: '/v1/responses',
        body: {
          model,
          stream: true,
          store: false,
          input: said,
          tools: [{ type: 'function', name: 'shell', parameters: schema }],
        },
      }
    : {
        surface: 'messages' as const,
        path: '/v1/messages',
        body: {
          model,
          stream: true,
          max_tokens: Number(maxTokens),
          messages: said,
          tools: [{ name: 'bash', input_schema: schema }],
        },
      }
}

test('the holds that the page tells of agents are those of the shipped prices', async () => {
  assert.equal(rows.length, 7)
  for (const { model, maxTokens, usd } of rows) {
    const { surface, path, body } = requestOf(model, maxTokens)
    const endpoint = findEndpoint(surface, 'POST', path)
    const facts = await factsOf(endpoint, body)
    const { hold } = pricer.plan({
      surface,
      method: 'POST',
      path,
      endpoint,
      facts,
      modelAsked: modelAsked(facts),
      bodyBytes: Buffer.byteLength(JSON.stringify(body)),
      atMs: Date.now(),
    })
    assert.ok(hold.kind === 'bound', `${model}: ${hold.kind}`)
    assert.equal((Number(hold.nanos) / 1e9).toFixed(2), usd, model)
  }
})
