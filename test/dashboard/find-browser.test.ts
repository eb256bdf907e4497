import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from '../support/suite.ts'
import { findBrowser, searchBrowser } from './find-browser.ts'

const dir = mkdtempSync(join(tmpdir(), 'tollgate-browser-'))
after(() => rmSync(dir, { recursive: true }))

test('a browser that cannot print a page, but works over DevTools, is used', async () => {
  const { path, env } = await findBrowser()
  const variables = Object.entries(env).map(([name, value]) => `${name}='${value}'`)
  const stubborn = join(dir, 'chromium')
  const lines = [
    '#!/bin/sh',
    'case "$*" in *--dump-dom*) exit 1;; esac',
    `${variables.join(' ')} exec '${path}' "$@"`,
  ]
  writeFileSync(stubborn, lines.join('\n'), { mode: 0o755 })
  const before = process.env['CHROMIUM_PATH']
  process.env['CHROMIUM_PATH'] = stubborn
  try {
    assert.equal((await searchBrowser()).path, stubborn)
  } finally {
    if (before === undefined) delete process.env['CHROMIUM_PATH']
    else process.env['CHROMIUM_PATH'] = before
  }
})
