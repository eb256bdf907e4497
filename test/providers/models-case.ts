import assert from 'node:assert/strict'
import type { Surface } from '../../src/kernel/vocabulary.ts'
import { test } from '../support/suite.ts'
import { type Body, modelsOf } from './request-facts-of.ts'

/** `expected` lists the names if every model is known, else a pattern of the reason. */
export type ModelsCase = readonly [
  what: string,
  surface: Surface,
  request: string,
  body: Body,
  expected: readonly string[] | RegExp,
]

export function testCase([what, surface, request, body, expected]: ModelsCase): void {
  const answer = expected instanceof RegExp ? 'unknown' : `[${expected}]`
  test(`${what}: ${answer} (${request.split('?')[0]})`, async () => {
    const { names, unknown, batchFile } = await modelsOf(surface, request, body)
    assert.equal(batchFile, null)
    if (expected instanceof RegExp) assert.match(unknown ?? '', expected)
    else assert.deepEqual({ names, unknown }, { names: expected, unknown: null })
  })
}

/** A line names surface and request; below it `what | body | = names` or `~ reason`; a body `-` is none. */
export function testModels(table: string): void {
  let surface: Surface = 'chat'
  let request = ''
  for (const line of table.split('\n').filter((each) => each !== '')) {
    if (!line.startsWith('  ')) {
      surface = line.startsWith('chat ') ? 'chat' : 'messages'
      request = line.slice(surface.length + 1)
      continue
    }
    const [what = '', body = '', expected = ''] = line.trim().split(' | ')
    const names = expected.slice(2).split(', ')
    const answer = expected.startsWith('~ ')
      ? new RegExp(expected.slice(2))
      : names.filter((name) => name !== '')
    testCase([what, surface, request, body === '-' ? null : body, answer])
  }
}
