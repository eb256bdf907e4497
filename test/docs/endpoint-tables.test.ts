import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { allEndpoints } from '../../src/providers/find-endpoint.ts'
import { test } from '../support/suite.ts'
import { endpointTables, PAGE_FILE, pageWithEndpoints } from './endpoint-tables.ts'

test('the endpoints of docs/COMPATIBILITY.md match the tables', () => {
  assert.equal(
    readFileSync(PAGE_FILE, 'utf8'),
    pageWithEndpoints(),
    'run `node test/docs/endpoint-tables.ts` and commit docs/COMPATIBILITY.md',
  )
})

test('every endpoint is on that page once', () => {
  const rows = endpointTables().matchAll(/^\| ([A-Z][A-Z ]*) \| `([^`]+)` \|/gm)
  const shown = Array.from(rows, ([, methods = '', template = '']) =>
    methods.split(' ').map((method) => `${method} ${template}`),
  ).flat()
  assert.deepEqual(
    shown.sort(),
    allEndpoints()
      .map(({ method, template }) => `${method} ${template}`)
      .sort(),
  )
})
