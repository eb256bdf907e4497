import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { THREAD_YOUNG_MEGABYTES } from '../../src/kernel/runtime.ts'
import { test } from '../support/suite.ts'
import { serveTollgate } from '../support/tollgate-process.ts'

const tellHeapLimit = new URL('../support/tell-heap-limit.ts', import.meta.url).href

/** The megabytes that the heaps of the main thread and the store's may take, in a gateway started with these options. */
async function heapLimits(options: string): Promise<{ main: number; thread: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-heaps-'))
  const file = join(folder, 'limits')
  const tollgate = await serveTollgate({
    TOLLGATE_DATABASE_URL: '',
    NODE_OPTIONS: `${options} --import=${tellHeapLimit}`,
    HEAP_LIMITS_FILE: file,
  })
  try {
    const [main = Number.NaN, thread = Number.NaN, ...others] = readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map(Number)
    assert.deepEqual(others, [], "one thread beside the main one: the store's")
    return { main, thread }
  } finally {
    await tollgate.dispose()
    rmSync(folder, { recursive: true })
  }
}

test('what V8 is configured to do with young objects holds for the main thread; others have a limit of their own', async () => {
  const old = '--max-old-space-size=500'
  const few = await heapLimits(`${old} --max-semi-space-size=8`)
  const many = await heapLimits(`${old} --max-semi-space-size=16`)
  // V8 counts the young space three times: for new objects, for survivors, and for large objects.
  assert.equal(many.main - few.main, 3 * (16 - 8))
  assert.equal(many.thread, few.thread)
  assert.equal(many.thread, 500 + THREAD_YOUNG_MEGABYTES)
})
