import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { Server, Socket } from 'node:net'
import { checkNodeInternals, UnsupportedNode } from '../../src/kernel/node-internals.ts'
import { readSourceTree } from '../style/source-tree.ts'
import { test } from '../support/suite.ts'

test('this Node has what is used of it beyond its documentation', async () => {
  await checkNodeInternals()
})

test('a Node whose sockets do not write by what the instance has is refused', async (t) => {
  const write = Reflect.get(Socket.prototype, '_write') as (...args: unknown[]) => void
  t.mock.method(Socket.prototype, 'write', function (this: Socket, text: string) {
    write.call(this, Buffer.from(text), 'buffer', () => {})
    return true
  })
  await assert.rejects(
    checkNodeInternals(),
    (error: Error) =>
      error instanceof UnsupportedNode &&
      /^Node \d+\..*`_write` and `_writev`.*"engines"/.test(error.message),
  )
})

test('a Node whose accepted sockets have no handle is refused', async (t) => {
  t.mock.method(Server.prototype, 'emit', function (this: Server, name: string, accepted?: Socket) {
    if (accepted !== undefined) Reflect.set(accepted, '_handle', null)
    return EventEmitter.prototype.emit.call(this, name, accepted)
  })
  await assert.rejects(checkNodeInternals(), /no `_handle`/)
})

test('nothing else in the source touches what Node does not promise', () => {
  const internal = /\bnode:_|\b_handle\b|\._writev?\b|setFlagsFromString|process\.binding|internalBinding/
  assert.deepEqual(
    readSourceTree('src')
      .filter(({ text }) => internal.test(text))
      .map(({ path }) => path),
    ['src/kernel/node-internals.ts'],
  )
})
