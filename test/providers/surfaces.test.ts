import assert from 'node:assert/strict'
import { upstreamTarget } from '../../src/providers/surfaces.ts'
import { test } from '../support/suite.ts'

const rows: readonly [surface: 'messages' | 'chat', base: string, path: string, target: string][] = [
  ['messages', 'https://api.anthropic.com', '/v1/messages', '/v1/messages'],
  ['messages', 'https://proxy.example/anthropic/', '/v1/messages', '/anthropic/v1/messages'],
  ['messages', 'https://api.anthropic.com', '/', '/'],
  ['chat', 'https://api.openai.com/v1', '/v1/chat/completions', '/v1/chat/completions'],
  ['chat', 'https://api.openai.com/v1/', '/v1/chat/completions', '/v1/chat/completions'],
  ['chat', 'http://localhost:11434', '/v1/models', '/models'],
  ['chat', 'https://x.example/openai/v2', '/v1/models', '/openai/v2/models'],
  ['chat', 'https://api.openai.com/v1', '/v1', '/v1'],
  ['chat', 'https://api.openai.com/v1', '/elsewhere', '/elsewhere'],
  ['chat', 'https://x.example/openai/v1', '/v1beta/x', '/openai/v1beta/x'],
  ['chat', 'http://localhost', '/v1', '/'],
]
for (const [surface, base, path, target] of rows) {
  test(`${surface}: ${path} goes to ${target} of ${base}`, () => {
    assert.equal(upstreamTarget(surface, new URL(base), { path, query: '?a=%2F+b' }), `${target}?a=%2F+b`)
  })
}
