import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { allEndpoints } from '../../src/providers/find-endpoint.ts'
import { test } from '../support/suite.ts'

/** The paths in the first column of the table, in docs/METERING.md. */
function documented(): string[] {
  const text = readFileSync(new URL('../../docs/METERING.md', import.meta.url), 'utf8')
  const section = text.split('## Every paid endpoint')[1]?.split('\n## ')[0] ?? ''
  const rows = section.split('\n').filter((line) => line.startsWith('| `/v1'))
  return rows.flatMap((row) => {
    const [first = ''] = row.split(' | ')
    const form = first.includes('over a WebSocket') ? 'WS ' : ''
    return (first.match(/\/v1[^`]*/g) ?? []).map((path) => form + path)
  })
}

test('the table in METERING.md lists every paid endpoint once, and no other', () => {
  const paid = allEndpoints().filter(({ billing }) => billing !== 'free' && billing !== 'mints_credential')
  const http = paid.filter(({ method }) => method !== 'WS').map(({ template }) => template)
  // A turn on the socket of /v1/responses costs what the same request costs over HTTP.
  const sockets = paid.filter(({ method, template }) => method === 'WS' && template !== '/v1/responses')
  const named = [...http, ...sockets.map(({ template }) => `WS ${template}`)]
  assert.deepEqual(documented().sort(), [...new Set(named)].sort())
})
