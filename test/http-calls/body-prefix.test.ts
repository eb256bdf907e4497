import assert from 'node:assert/strict'
import { BodyPrefix } from '../../src/http-calls/body-prefix.ts'
import { test } from '../support/suite.ts'

test('bodies share a bounded memory, a body that does not fit is cut and says so, and a release frees it', async () => {
  const memory = { bytesLeft: 10 }
  const first = new BodyPrefix(8, memory)
  const second = new BodyPrefix(8, memory)
  first.append(Buffer.from('123456'))
  second.append(Buffer.from('abcdef'))
  second.append(Buffer.from('g'))
  assert.deepEqual(await first.decoded([]), { bytes: Buffer.from('123456'), whole: true })
  assert.deepEqual(await second.decoded([]), { bytes: Buffer.from('abcd'), whole: false })
  assert.equal(second.lengthBytes, 7)
  first.release()
  second.release()
  assert.equal(memory.bytesLeft, 10)
})
