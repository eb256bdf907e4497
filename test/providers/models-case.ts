import assert from 'node:assert/strict'
import type { Surface } from '../../src/kernel/vocabulary.ts'
import { test } from '../support/suite.ts'
import { type Body, modelsOf } from './request-facts-of.ts'

/** `expected` has the names where every model is known, else a pattern of the reason. */
export type ModelsCase = readonly [
  what: string,
  surface: Surface,
  request: string,
  body: Body,
  expected: readonly string[] | RegExp,
]

export function testModels([what, surface, request, body, expected]: ModelsCase): void {
  const answer = expected instanceof RegExp ? 'unknown' : `[${expected}]`
  test(`${what}: ${answer} (${request.split('?')[0]})`, async () => {
    const { names, unknown, batchFile } = await modelsOf(surface, request, body)
    assert.equal(batchFile, null)
    if (expected instanceof RegExp) assert.match(unknown ?? '', expected)
    else assert.deepEqual({ names, unknown }, { names: expected, unknown: null })
  })
}
