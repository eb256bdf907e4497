import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { logLine } from '../../src/telemetry/call-log.ts'
import { METRICS } from '../../src/telemetry/metric-table.ts'
import { test } from '../support/suite.ts'

const text = readFileSync(new URL('../../docs/OPERATIONS.md', import.meta.url), 'utf8')

test('docs/OPERATIONS.md lists exactly the metrics, with type, labels and meaning', () => {
  const rows = METRICS.map(({ name, type, labels, help }) => {
    const named = labels.map((label) => `\`${label}\``).join(', ')
    return `| \`${name}\` | ${type} | ${named} | ${help} |`
  })
  const shown = text
    .split('\n')
    .filter((line) => /^\| `tollgate_\w+` \| (?:counter|gauge|histogram) /.test(line))
  assert.deepEqual(shown, rows)
  const names = new Set(METRICS.map(({ name }) => name))
  for (const [name] of text.matchAll(/\btollgate_[a-z_]+\b/g)) assert.ok(names.has(name), name)
})

test('the log line in docs/OPERATIONS.md has the members of real ones, in order', () => {
  const [, shown = ''] = /```json\n(\{"level.*)\n```/.exec(text) ?? []
  const line = logLine({
    ...{ requestId: 'req_1', keyId: 'key_1', surface: 'messages', method: 'POST', path: '', endpoint: null },
    ...{ modelAsked: null, modelServed: null, status: 200, code: null, cut: false, costNanos: 1n },
    ...{
      tokens: { input: 1, output: 1, cacheRead: 1, cacheWrite: 1 },
      endedAtMs: 0,
      ms: 1,
      headers: [],
      upstream: null,
    },
  })
  const members = (json: string) => Object.keys(JSON.parse(json) as object)
  assert.deepEqual(members(shown), members(line))
})
