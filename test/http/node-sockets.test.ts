import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { checkNodeSockets, readBuffer, stableCopy } from '../../src/http/node-sockets.ts'
import { InstallationError } from '../../src/kernel/errors.ts'
import { readSourceTree } from '../style/source-tree.ts'
import { test } from '../support/suite.ts'

test('memory that will be reused is copied, other memory is not', () => {
  const own = Buffer.from('own')
  assert.equal(stableCopy(own), own)
  readBuffer.write('read')
  const read = stableCopy(readBuffer.subarray(0, 4))
  readBuffer.write('over')
  assert.equal(String(read), 'read')
})

test('a Node whose sockets do not write through `_writev` is refused', (t) => {
  checkNodeSockets()
  const { prototype } = Socket as unknown as { prototype: { _writev: unknown } }
  const { _writev: writev } = prototype
  t.after(() => {
    prototype._writev = writev
  })
  prototype._writev = undefined
  assert.throws(
    () => checkNodeSockets(),
    (error: Error) => error instanceof InstallationError && /`_writev`.*"engines"/.test(error.message),
  )
})

test('only these files use Node internals, and only src/http uses the shared buffer', () => {
  const filesWith = (text: RegExp) =>
    readSourceTree('src')
      .filter((file) => text.test(file.text))
      .map(({ path }) => path)
  assert.deepEqual(
    filesWith(/\bnode:_|\b_handle\b|\._writev?\b|setFlagsFromString|process\.binding|internalBinding/),
    ['src/http/node-sockets.ts', 'src/kernel/runtime.ts'],
  )
  const outside = filesWith(/\b(?:readBuffer|stableCopy)\b/).filter((path) => !path.startsWith('src/http/'))
  assert.deepEqual(outside, [])
})
