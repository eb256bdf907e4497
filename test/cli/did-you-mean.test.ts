import assert from 'node:assert/strict'
import { test } from 'node:test'
import { didYouMean } from '../../src/cli/command.ts'
import { runTollgate } from '../support/tollgate-process.ts'

const KNOWN = ['serve', 'keys', 'usage', 'requests', 'credits', 'prices', 'doctor']

test('a word that is a few changes away from a known one, or begins it, is taken for it', () => {
  for (const [typed, meant] of [
    ['kyes', 'keys'],
    ['key', 'keys'],
    ['reqests', 'requests'],
    ['req', 'requests'],
    ['srve', 'serve'],
    ['docter', 'doctor'],
    ['credit', 'credits'],
  ] as const)
    assert.equal(didYouMean(typed, KNOWN), ` Did you mean ${meant}?`, typed)
  for (const typed of ['', 'k', 'xyz', 'start', 'elephant', 'x'.repeat(100)])
    assert.equal(didYouMean(typed, KNOWN), '', typed)
})

test('of two that are as near the first is named, and the nearest before one that is less near', () => {
  assert.equal(didYouMean('--lomit', ['--emit', '--limit', '--limits']), ' Did you mean --limit?')
})

test('a mistyped command names the one that was probably meant', async () => {
  for (const [typed, told] of [
    ['reqeusts', 'tollgate: there is no command "reqeusts". Did you mean requests? See tollgate --help.\n'],
    [
      '--verison',
      'tollgate: there is no command "--verison". Did you mean --version? See tollgate --help.\n',
    ],
    ['frobnicate', 'tollgate: there is no command "frobnicate". See tollgate --help.\n'],
  ] as const) {
    const { code, stdout, stderr } = await runTollgate([typed])
    assert.deepEqual([code, stdout, stderr], [2, '', told])
  }
})
