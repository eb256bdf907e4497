import assert from 'node:assert/strict'
import { hold } from '../../src/pricing/hold.ts'
import type { RequestProfile } from '../../src/pricing/request-profile.ts'
import { findEndpoint } from '../../src/providers/find-endpoint.ts'
import { profileRequest } from '../../src/providers/profile-request.ts'
import { factsOf } from '../providers/request-facts-of.ts'
import { test } from '../support/suite.ts'
import { shipped } from './worked-example.ts'

async function profileOf(surface: 'messages' | 'chat', path: string): Promise<RequestProfile> {
  const endpoint = findEndpoint(surface, 'POST', path)
  const facts = await factsOf(endpoint, { inference_geo: 'global' })
  const terms = { chatDefaultTier: null, chatRegional: false }
  const profile = profileRequest({ surface, path, endpoint, facts, bodyBytes: 1_000 }, terms)
  return { ...profile, maxOutputTokens: 100 }
}

export const MESSAGE: RequestProfile = {
  ...(await profileOf('messages', '/v1/messages')),
  model: 'claude-opus-5',
}

export const COMPLETION: RequestProfile = {
  ...(await profileOf('chat', '/v1/chat/completions')),
  model: 'gpt-5.4',
}

export type BoundExample = readonly [says: string, request: RequestProfile, listNanos: bigint]

export function testBounds(examples: readonly BoundExample[]): void {
  for (const [says, request, listNanos] of examples) {
    test(says, () => {
      assert.deepEqual(hold(request, shipped), { kind: 'bound', listNanos, costNanos: listNanos })
    })
  }
}
