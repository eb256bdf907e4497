import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { holdOf } from '../pricing/hold-of.ts'
import { test } from '../support/suite.ts'

const page = readFileSync(new URL('../../docs/CODING-AGENTS.md', import.meta.url), 'utf8')
const rows = Array.from(
  page.matchAll(/^\| `([^`]+)` \| (?:`max_tokens` ([\d,]+)|none \(Codex sends none\)) \| ([\d.]+) \|$/gm),
  ([, model = '', tokens, usd = '']) => ({ model, maxTokens: tokens?.replaceAll(',', ''), usd }),
)

function requestOf(model: string, maxTokens: string | undefined) {
  const said = [{ role: 'user', content: 'x'.repeat(100_000) }]
  const schema = { type: 'object', properties: {} }
  return maxTokens === undefined
    ? {
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

test('the holds that the page states for agents match the shipped prices', async () => {
  assert.equal(rows.length, 7)
  for (const { model, maxTokens, usd } of rows) {
    const { path, body } = requestOf(model, maxTokens)
    assert.equal((Number(await holdOf(path, body)) / 1e9).toFixed(2), usd, model)
  }
})
