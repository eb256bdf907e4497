import assert from 'node:assert/strict'
import { WEBHOOK_EVENTS } from '../../dashboard/src/api.ts'
import { EVENT_TYPES } from '../../src/kernel/vocabulary.ts'
import { test } from '../support/suite.ts'

test('the form of a webhook offers the events that the gateway knows, each once; tests are sent on demand', () => {
  const offered = EVENT_TYPES.filter((type) => type !== 'webhook.test')
  assert.deepEqual([...WEBHOOK_EVENTS].sort(), [...offered].sort())
})
