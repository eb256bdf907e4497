import assert from 'node:assert/strict'
import { StoreUnavailable } from '../../src/kernel/errors.ts'
import { createLog } from '../../src/kernel/log.ts'
import type { Pool } from '../../src/store/postgres/database.ts'
import { StoreNode } from '../../src/store/postgres/node.ts'
import type { Row } from '../../src/store/rows.ts'
import { test } from '../support/suite.ts'

const SILENT_MS = 15_000

/** A node whose database only records statements. */
function nodeUnderTest() {
  const state = { nowMs: 0, away: false, fenced: false, registrations: 0, heard: [] as number[] }
  const beats: (() => void)[] = []
  const db: Pool = {
    async query(text): Promise<readonly Row[]> {
      const isBeat = text.startsWith('UPDATE node SET seen_at_ms')
      if (isBeat) for (const seen of beats.splice(0)) setImmediate(seen)
      if (state.away) throw new StoreUnavailable('away')
      if (text.includes('FROM schema_version')) return [{ version: 1n, oldest_version: 1n }]
      if (text.startsWith('INSERT INTO node')) {
        state.registrations += 1
        state.fenced = false
      }
      return isBeat && !state.fenced ? [{ seen_at_ms: 1_000n + BigInt(state.nowMs) }] : []
    },
    transaction: (work) => work({ ...db, pipeline: () => assert.fail('no node has open calls here') }),
    close: async () => {},
  }
  const node = new StoreNode(
    {
      heartbeats: db,
      sweeps: db,
      nextUlid: () => 'ULID',
      clock: { monotonicMs: () => state.nowMs, sync: (databaseMs) => state.heard.push(databaseMs) },
      log: createLog('silent'),
      onBeat() {},
    },
    { name: 'test', alone: false, beatEveryMs: 1, silentMs: SILENT_MS },
  )
  /** Resolves after the next heartbeat and the work that it causes. */
  async function beat(): Promise<void> {
    await new Promise<void>((resolve) => beats.push(resolve))
    await new Promise<void>((resolve) => beats.push(resolve))
  }
  return { node, state, beat }
}

async function withNode(prove: (parts: ReturnType<typeof nodeUnderTest>) => Promise<void>): Promise<void> {
  const parts = nodeUnderTest()
  const { node } = parts
  // The pauses of the loops do not keep a process alive.
  const awake = setInterval(() => {}, 1_000)
  await node.registered()
  try {
    await prove(parts)
  } finally {
    await node.stop()
    clearInterval(awake)
  }
}

test('a node gives up silent nodes only after its own heartbeats have run for that long', () =>
  withNode(async ({ node, state, beat }) => {
    await beat()
    for (let i = 0; i < 2; i++) {
      state.nowMs += 5_000
      await beat()
    }
    assert.equal(node.isSteady, false)
    state.nowMs += 5_000
    await beat()
    assert.equal(node.isSteady, true)
  }))

test('after an outage of the database no node is given up for its silence', () =>
  withNode(async ({ node, state, beat }) => {
    await beat()
    state.away = true
    state.nowMs += 60_000
    await beat()
    state.away = false
    await beat()
    state.nowMs += SILENT_MS - 1
    await beat()
    assert.equal(node.isSteady, false)
    state.nowMs += 1
    await beat()
    assert.equal(node.isSteady, true)
  }))

test('a node that was suspended does not fence another when it resumes', () =>
  withNode(async ({ node, state, beat }) => {
    await beat()
    state.nowMs += SILENT_MS + 1
    await beat()
    assert.equal(node.isSteady, false)
  }))

test('a fenced node registers again', () =>
  withNode(async ({ state, beat }) => {
    await beat()
    assert.equal(state.registrations, 1)
    state.fenced = true
    await beat()
    assert.equal(state.registrations, 2)
  }))

test('every heartbeat brings the time of the database', () =>
  withNode(async ({ state, beat }) => {
    state.nowMs = 7_000
    await beat()
    assert.equal(state.heard.at(-1), 8_000)
  }))
