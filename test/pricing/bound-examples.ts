import assert from 'node:assert/strict'
import { boundOf } from '../../src/pricing/bound.ts'
import type { BoundRequest } from '../../src/pricing/modifiers.ts'
import { NO_REQUEST_TOOLS as NO_TOOLS } from '../../src/providers/request-members.ts'
import { test } from '../support/suite.ts'
import { shipped } from './worked-example.ts'

export const MESSAGE: BoundRequest = {
  surface: 'messages',
  endpoint: '/v1/messages',
  regional: false,
  batch: false,
  model: 'claude-opus-5',
  bodyBytes: 1_000,
  maxOutputTokens: 100,
  boundClass: 'plain',
  prompts: 1,
  n: 1,
  serviceTier: null,
  mayBeFast: false,
  geography: 'global',
  compacts: false,
  passes: 0,
  otherModels: [],
  tools: NO_TOOLS,
}

export const COMPLETION: BoundRequest = {
  ...MESSAGE,
  surface: 'chat',
  endpoint: '/v1/chat/completions',
  model: 'gpt-5.4',
}

export type BoundExample = readonly [says: string, request: BoundRequest, listNanos: bigint]

export function testBounds(examples: readonly BoundExample[]): void {
  for (const [says, request, listNanos] of examples) {
    test(says, () => {
      assert.deepEqual(boundOf(request, shipped), { kind: 'bound', listNanos, costNanos: listNanos })
    })
  }
}
