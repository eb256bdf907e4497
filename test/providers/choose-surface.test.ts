import assert from 'node:assert/strict'
import type { Surface } from '../../src/kernel/vocabulary.ts'
import { chooseSurface, surfacesOf } from '../../src/providers/find-endpoint.ts'
import { test } from '../support/suite.ts'

const signals: readonly { readonly sent: readonly string[]; readonly onSharedPath: Surface }[] = [
  { sent: [], onSharedPath: 'chat' },
  { sent: ['authorization'], onSharedPath: 'chat' },
  { sent: ['x-api-key'], onSharedPath: 'messages' },
  { sent: ['anthropic-version'], onSharedPath: 'messages' },
  { sent: ['anthropic-version', 'x-api-key'], onSharedPath: 'messages' },
]

const paths: readonly { readonly path: string; readonly on: readonly Surface[] }[] = [
  { path: '/v1/messages', on: ['messages'] },
  { path: '/v1/messages/count_tokens', on: ['messages'] },
  { path: '/v1/messages/batches/msgbatch_1/results', on: ['messages'] },
  { path: '/v1/complete', on: ['messages'] },
  { path: '/v1/oauth/token', on: ['messages'] },
  { path: '/v1/organizations/me', on: ['messages'] },
  { path: '/v1/agents/agent_1/archive', on: ['messages'] },
  { path: '/v1/chat/completions', on: ['chat'] },
  { path: '/v1/responses', on: ['chat'] },
  { path: '/v1/responses/resp_1', on: ['chat'] },
  { path: '/v1/realtime', on: ['chat'] },
  { path: '/v1/organization/costs', on: ['chat'] },
  { path: '/v1/skills/skill_1/content', on: ['chat'] },
  { path: '/v1/agents/sessions/sess_1', on: ['chat'] },
  { path: '/v1/models', on: ['messages', 'chat'] },
  { path: '/v1/models/some-model', on: ['messages', 'chat'] },
  { path: '/v1/files/file_1/content', on: ['messages', 'chat'] },
  { path: '/v1/vaults/v/credentials/c', on: ['messages', 'chat'] },
  // These paths are literal on Chat; on Messages `sessions` would be an agent's id.
  { path: '/v1/agents/sessions', on: ['messages', 'chat'] },
  { path: '/v1/agents/automations', on: ['messages', 'chat'] },
  { path: '/v1/agents/environments', on: ['messages', 'chat'] },
  { path: '/v1/unheard/of', on: [] },
  { path: '/v1/messages/', on: [] },
  { path: '/v1/%63hat/completions', on: [] },
  { path: '/', on: [] },
]

for (const { path, on } of paths) {
  const [only] = on
  const rule = on.length === 1 && only !== undefined ? `is always ${only}` : 'is decided by the headers'
  test(`${path} ${rule}`, () => {
    assert.deepEqual([...surfacesOf(path)].sort(), [...on].sort())
    for (const { onSharedPath, sent } of signals) {
      const expected = on.length === 1 ? only : onSharedPath
      const chosen = chooseSurface(path, (name) => sent.includes(name))
      assert.equal(chosen, expected, JSON.stringify(sent))
    }
  })
}
