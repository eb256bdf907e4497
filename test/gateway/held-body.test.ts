import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { HeldBody } from '../../src/gateway/held-body.ts'
import {
  BodyRoom,
  type BodyRoomParts,
  freeBytesOf,
  KeyShare,
  NoBodyRoom,
} from '../../src/gateway/key-shares.ts'
import { limits } from '../../src/kernel/limits.ts'
import { readBuffer } from '../../src/kernel/memory.ts'
import { until } from '../support/until.ts'

const tempDir = mkdtempSync(join(tmpdir(), 'tollgate-held-'))
after(() => rmSync(tempDir, { recursive: true }))

const STEP = limits.spillStepBytes

function roomFor(parts: Partial<BodyRoomParts>): BodyRoom {
  const freeBytes = () => Promise.resolve(1e12)
  return new BodyRoom({ tempDir, memoryBytesMax: 1_000, spilledBytesMax: 100 * STEP, freeBytes, ...parts })
}

async function givenBack(room: BodyRoom): Promise<void> {
  await until('the disk is given back', async () => room.spilledBytes === 0)
  assert.equal(room.memoryBytes, 0)
}

async function bytesOf(held: HeldBody): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of held.parts()) parts.push(part)
  return Buffer.concat(parts)
}

test('a small body that waits with its call keeps its own bytes, and little more memory than they take', () => {
  const held = new HeldBody(roomFor({}), new KeyShare('k'))
  readBuffer.fill(7, 0, 300)
  assert.equal(held.append(readBuffer.subarray(0, 300)), null)
  readBuffer.fill(0, 0, 300)
  assert.deepEqual(held.bytes(), Buffer.alloc(300, 7))
  assert.equal(held.bytes()?.buffer.byteLength, 1024)
  held.dispose()
})

test('the bodies of one key take half of the memory at most, then files; another key still finds memory', async () => {
  const room = roomFor({ memoryBytesMax: 1_000 })
  const [greedy, modest] = [new KeyShare('greedy'), new KeyShare('modest')]
  const bodies = Array.from({ length: 8 }, () => new HeldBody(room, greedy))
  for (const body of bodies) await body.append(Buffer.alloc(100, 1))
  assert.equal(room.memoryBytes, 500)
  assert.equal(greedy.memoryBytes, 500)
  assert.equal(greedy.spilledBytes, 3 * STEP)
  const other = new HeldBody(room, modest)
  assert.equal(other.append(Buffer.alloc(250, 2)), null)
  assert.equal(other.bytes()?.length, 250)
  for (const body of [...bodies, other]) body.dispose()
  await givenBack(room)
  assert.deepEqual([greedy.memoryBytes, greedy.spilledBytes, modest.memoryBytes], [0, 0, 0])
})

test('however many keys fill their parts, the next one finds room', async () => {
  const room = roomFor({ memoryBytesMax: 1_000_000, spilledBytesMax: 1_000 * STEP })
  const held: HeldBody[] = []
  for (let key = 0; key < 8; key++) {
    const share = new KeyShare(`greedy ${key}`)
    const fill = async () => {
      for (;;) {
        const body = new HeldBody(room, share)
        held.push(body)
        await body.append(Buffer.alloc(1_000))
      }
    }
    await assert.rejects(fill(), /those of this key/)
  }
  const modest = new HeldBody(room, new KeyShare('modest'))
  assert.equal(modest.append(Buffer.alloc(1_000)), null)
  const large = new HeldBody(room, new KeyShare('large'))
  await large.append(Buffer.alloc(100_000))
  for (const body of [...held, modest, large]) body.dispose()
  await givenBack(room)
})

test('a body that goes on in a file is read as it came, as often as wanted', async () => {
  const held = new HeldBody(roomFor({ memoryBytesMax: 20 }), new KeyShare('k'))
  for (const text of ['in memory,', ' in a file', ' and so on']) await held.append(Buffer.from(text))
  for (let i = 0; i < 2; i++) assert.equal(String(await bytesOf(held)), 'in memory, in a file and so on')
  held.dispose()
})

test('of one key’s bodies no more than half of the bound is spilled, of the next half of what is left', async () => {
  const room = roomFor({ memoryBytesMax: 0, spilledBytesMax: 4 * STEP })
  const [a, b, c] = ['a', 'b', 'c'].map((name) => new KeyShare(name)) as [KeyShare, KeyShare, KeyShare]
  const held: HeldBody[] = []
  async function hold(share: KeyShare): Promise<void> {
    const body = new HeldBody(room, share)
    held.push(body)
    await body.append(Buffer.alloc(1))
  }
  await hold(a)
  await hold(a)
  await assert.rejects(hold(a), (error) => error instanceof NoBodyRoom && /of this key/.test(error.message))
  await hold(b)
  await assert.rejects(hold(b), /of this key/)
  await assert.rejects(hold(c), (error) => error instanceof NoBodyRoom && /large ones/.test(error.message))
  assert.equal(room.spilledBytes, 3 * STEP)
  for (const body of held) body.dispose()
  await givenBack(room)
  assert.deepEqual([a.spilledBytes, b.spilledBytes, c.spilledBytes], [0, 0, 0])
  await hold(c)
  held.at(-1)?.dispose()
  await givenBack(room)
})

test('the last of the disk is left alone, also by bodies that look at it at the same time', async () => {
  let freeBytes = limits.diskFreeBytesMin + 3 * STEP
  const room = roomFor({ memoryBytesMax: 0, freeBytes: () => Promise.resolve(freeBytes) })
  const bodies = Array.from({ length: 10 }, (_, i) => new HeldBody(room, new KeyShare(String(i))))
  const results = await Promise.allSettled(bodies.map((body) => body.append(Buffer.alloc(1))))
  const refused = results.filter(({ status }) => status === 'rejected')
  // The room of a refused body is given back once it is refused.
  assert.ok(refused.length >= 7, `${refused.length} were refused`)
  assert.ok(room.spilledBytes <= 3 * STEP)
  for (const body of bodies) body.dispose()
  await givenBack(room)

  const body = new HeldBody(room, new KeyShare('late'))
  await body.append(Buffer.alloc(STEP))
  freeBytes = limits.diskFreeBytesMin
  await assert.rejects(async () => body.append(Buffer.alloc(1)), /the disk is nearly full/)
  body.dispose()
  await givenBack(room)
})

test('a body that is let go of while it is being written gives its room back, and leaves no file', async () => {
  const room = roomFor({ memoryBytesMax: 0 })
  for (const steps of [0, 1, 2, 5, 20]) {
    const body = new HeldBody(room, new KeyShare('k'))
    const appended = Promise.resolve(body.append(Buffer.alloc(1_000_000))).catch(() => {})
    for (let i = 0; i < steps; i++) await new Promise((resolve) => setImmediate(resolve))
    body.dispose()
    body.dispose()
    await appended
    await givenBack(room)
  }
  assert.deepEqual(readdirSync(tempDir), [])
})

test('what is free of a disk is what statfs says, and more than nothing', async () => {
  assert.ok((await freeBytesOf(tempDir)) > 0)
})

test('a body in a file is read again whole after its beginning alone was read', async () => {
  const room = roomFor({ memoryBytesMax: 0 })
  const held = new HeldBody(room, new KeyShare('k'))
  const sent = Buffer.from(Array.from({ length: 1_000_000 }, (_, i) => i % 251))
  await held.append(sent)
  assert.deepEqual(await held.beginning(1_000), sent.subarray(0, 1_000))
  assert.deepEqual(await bytesOf(held), sent)
  assert.deepEqual(await bytesOf(held), sent)
  held.dispose()
  await givenBack(room)
})
