import assert from 'node:assert/strict'
import { ReadTurns } from '../../src/management/read-turns.ts'
import { test } from '../support/suite.ts'

test('so many reads of one caller run at once, so many wait, and other callers do not wait for them', async () => {
  const turns = new ReadTurns()
  const gate = Promise.withResolvers<void>()
  let [running, most] = [0, 0]
  const read = async () => {
    running += 1
    most = Math.max(most, running)
    await gate.promise
    running -= 1
    return 'read'
  }
  const all = Array.from({ length: 1_500 }, () => turns.take('busy', read))
  assert.equal(await turns.take('other', async () => 'at once'), 'at once')
  assert.equal(running, 16)
  gate.resolve()
  const answers = await Promise.all(all)
  assert.deepEqual(
    [
      most,
      answers.filter((answer) => answer === 'read').length,
      answers.filter((answer) => answer === null).length,
    ],
    [16, 1_016, 484],
  )
  assert.equal(await turns.take('busy', read), 'read')
})
