import assert from 'node:assert/strict'
import { WEBHOOK_EVENTS } from '../../dashboard/src/api.ts'
import { WEBHOOK_EVENT_TYPES } from '../../src/kernel/vocabulary.ts'
import { test } from '../support/suite.ts'

test('the form of a webhook offers the events that the gateway knows, each once', () => {
  assert.deepEqual([...WEBHOOK_EVENTS].sort(), [...WEBHOOK_EVENT_TYPES].sort())
})
