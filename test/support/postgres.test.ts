import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { assertEnterable } from './postgres.ts'
import { test } from './suite.ts'

test("a folder that PostgreSQL's user cannot enter is named", async (t) => {
  const closed = await mkdtemp(join(tmpdir(), 'tollgate-closed-'))
  t.after(() => rm(closed, { recursive: true }))
  const inside = join(closed, 'inside')
  await mkdir(inside, { mode: 0o755 })
  assertEnterable(tmpdir())
  assert.throws(() => assertEnterable(tmpdir(), inside), {
    message: new RegExp(`cannot enter ${closed}\\. Run chmod`),
  })
})
