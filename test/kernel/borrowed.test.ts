import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import type { MessageReceiver } from '../../src/http/message-reader.ts'
import {
  type Borrowed,
  ChunkList,
  copyIfBorrowed,
  readBuffer,
  viewOf,
  withBorrowed,
} from '../../src/kernel/memory.ts'
import { readSourceTree } from '../style/source-tree.ts'
import { test } from '../support/suite.ts'

class Keeper {
  field: Buffer = Buffer.alloc(0)
  bytes: Uint8Array = Buffer.alloc(0)
  readonly list: Buffer[] = []
  readonly parts = new ChunkList()
  stored: (() => Buffer) | null = null

  /** This method is never called: `tsc` checks it, and fails where one of these lines compiles. */
  keep(chunk: Borrowed, socket: Socket): void {
    // @ts-expect-error A field that keeps bytes takes no borrowed ones.
    this.field = chunk
    // @ts-expect-error
    this.bytes = chunk
    // @ts-expect-error Nor does a part of them become owned.
    this.field = chunk.subarray(1)
    // @ts-expect-error
    this.list.push(chunk)
    // @ts-expect-error
    this.stored = () => chunk
    // @ts-expect-error A socket may send them later.
    socket.write(chunk)
    // @ts-expect-error
    Buffer.concat([chunk])
    this.field = copyIfBorrowed(chunk)
    this.list.push(copyIfBorrowed(chunk.subarray(1)))
    this.parts.append(chunk)
    socket.write(copyIfBorrowed(chunk))
  }
}

/** A receiver that takes a Buffer would get borrowed bytes as if they were owned. */
// @ts-expect-error
const receiver: Pick<MessageReceiver, 'data'> = { data: (chunk: Buffer) => chunk.length > 0 }

test('what is borrowed is copied, what is owned is not', () => {
  assert.equal(typeof receiver.data, 'function')
  const keeper = new Keeper()
  const own = Buffer.from('own')
  assert.equal(copyIfBorrowed(own), own)
  readBuffer.write('read')
  keeper.field = copyIfBorrowed(readBuffer.subarray(0, 4))
  readBuffer.write('over')
  assert.equal(String(keeper.field), 'read')
  const slab = Buffer.allocUnsafeSlow(4)
  slab.write('lent')
  withBorrowed(slab, (chunk) => {
    keeper.list.push(copyIfBorrowed(chunk))
    assert.equal(viewOf(chunk).buffer, slab.buffer)
  })
  slab.write('gone')
  assert.equal(String(keeper.list[0]), 'lent')
  assert.equal(copyIfBorrowed(slab), slab, 'it is its owner’s again')
})

test('nothing but a parameter has the type of borrowed bytes', () => {
  // A field, an array, a map or a promise of borrowed bytes would keep them.
  const kept = /[#\w]+\??: (?:readonly )?Borrowed(?: \| null)? = |#\w+: Borrowed|Borrowed\[\]|<Borrowed/
  const keepers = readSourceTree('src').filter(({ text }) => kept.test(text))
  assert.deepEqual(
    keepers.map(({ path }) => path),
    // This file has the default of a parameter, whose bytes are our own.
    ['src/http/outgoing-reply.ts'],
  )
})
