import assert from 'node:assert/strict'
import { Listeners } from '../../src/http/outgoing-reply.ts'
import { test } from '../support/suite.ts'

test('those who listen hear of it in the order in which they came, each time', () => {
  const heard: string[] = []
  const listeners = new Listeners()
  listeners.fire()
  listeners.add(() => heard.push('a'))
  listeners.add(() => heard.push('b'))
  listeners.fire()
  listeners.fire()
  assert.deepEqual(heard, ['a', 'b', 'a', 'b'])
})

test('who is removed hears nothing more, and a stranger can be removed', () => {
  const heard: string[] = []
  const listeners = new Listeners()
  const a = () => heard.push('a')
  listeners.remove(a)
  listeners.add(a)
  listeners.add(() => heard.push('b'))
  listeners.remove(a)
  listeners.fire()
  assert.deepEqual(heard, ['b'])
})

test('who comes or goes while it is told changes nothing for this time', () => {
  const heard: string[] = []
  const listeners = new Listeners()
  const b = () => heard.push('b')
  listeners.add(() => {
    heard.push('a')
    listeners.remove(b)
    listeners.add(() => heard.push('c'))
  })
  listeners.add(b)
  listeners.fire()
  assert.deepEqual(heard, ['a', 'b'])
})
