import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { allEndpoints } from '../../src/providers/find-endpoint.ts'
import { test } from '../support/suite.ts'
import { compatibilityPage, PAGE_FILE } from './compatibility-page.ts'

test('the page of endpoints is the one that the tables make', () => {
  assert.equal(
    readFileSync(PAGE_FILE, 'utf8'),
    compatibilityPage(),
    'run `node test/docs/compatibility-page.ts` and commit docs/COMPATIBILITY.md',
  )
})

test('every endpoint is on that page once', () => {
  const rows = compatibilityPage().matchAll(/^\| ([A-Z][A-Z ]*) \| `([^`]+)` \|/gm)
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
