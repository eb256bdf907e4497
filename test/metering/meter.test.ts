import assert from 'node:assert/strict'
import {
  GuardedMeter,
  type Meter,
  type Metered,
  NOTHING_SHOWN,
  SilentMeter,
} from '../../src/metering/meter.ts'
import { test } from '../support/suite.ts'

class FailingMeter implements Meter {
  readonly shown = NOTHING_SHOWN
  readonly hasBegun = false
  readonly visibleBytes = 0
  readonly stage = 'closing'
  readonly #failsAt: 'write' | 'end'
  writes = 0

  constructor(failsAt: 'write' | 'end') {
    this.#failsAt = failsAt
  }

  write(chunk: Buffer): Buffer {
    this.writes++
    if (this.#failsAt === 'write') throw new Error('a fault of ours')
    return chunk
  }

  end(whole: boolean): Metered {
    if (this.#failsAt === 'end') throw new Error('a fault of ours')
    return new SilentMeter().end(whole)
  }
}

test('a meter that fails is not asked again, breaks nothing and says so at the end', () => {
  const failing = new FailingMeter('write')
  const meter = new GuardedMeter(failing)
  const chunk = Buffer.from('a')
  assert.equal(meter.write(chunk), chunk, 'the bytes pass')
  meter.write(Buffer.from('b'))
  assert.equal(failing.writes, 1)
  assert.equal(meter.stage, 'content')
  const metered = meter.end(true)
  assert.deepEqual(metered.faults, ['failed'])
  assert.equal(metered.inputKnown || metered.outputKnown, false)
})

test('a meter that fails at the end says so too', () => {
  const meter = new GuardedMeter(new FailingMeter('end'))
  meter.write(Buffer.from('a'))
  assert.equal(meter.stage, 'closing')
  assert.deepEqual(meter.end(false).faults, ['failed'])
})
