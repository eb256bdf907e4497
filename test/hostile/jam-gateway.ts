import { readConfig } from '../../src/config.ts'
import { createLog } from '../../src/kernel/log.ts'
import { startTollgate } from '../../src/main.ts'
import { watchWork } from './jam-watch.ts'

/** A gateway that tells its parent process its work so far, whenever asked. Configured by the environment. */

const config = readConfig(process.env)
const running = await startTollgate(config, {
  log: createLog(config.logLevel),
  onFatal(error) {
    process.stderr.write(`${error.message}\n`, () => process.exit(1))
  },
})
// The work of the start, such as reading the prices, is not counted: it belongs to no attack.
const work = watchWork()
process.on('message', (asked) => {
  if (asked === 'work') {
    process.send?.(work())
    return
  }
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  process.send?.(heapUsed + external)
})
process.once('disconnect', () => process.exit(0))
process.send?.({ port: running.port })
