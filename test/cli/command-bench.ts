import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Environment } from '../../src/config.ts'
import { runInThread } from '../support/command-thread.ts'
import {
  type CommandOptions,
  type Finished,
  type RunningCommand,
  startCommand,
} from '../support/tollgate-process.ts'
import { type SmallGateway, startSmallGateway } from './small-gateway.ts'

/** How a command reaches the books: on the data directory, or over HTTP with an admin key. */
export const WAYS = ['locally', 'over HTTP'] as const
export type Way = (typeof WAYS)[number]

export interface CommandBench {
  readonly gateway: SmallGateway
  /** Starts a command in a process of its own. */
  start(way: Way, args: readonly string[], how?: How): RunningCommand
  /** Runs a command in a process of its own if it has input or a terminal; otherwise in a thread. */
  run(way: Way, args: readonly string[], how?: How): Promise<Finished>
  /** The API's own answer, as text. */
  api(path: string): Promise<string>
  close(): Promise<void>
}

interface How extends CommandOptions {
  readonly environment?: Environment
}

type CommandLine = readonly [args: readonly string[], environment: Environment]

/** Commands beside a running gateway. */
export async function startCommandBench(): Promise<CommandBench> {
  const gateway = await startSmallGateway()
  const { dataDir, environment: books, url } = gateway.tollgate
  const keyFile = join(dataDir, 'admin-key')
  const started: RunningCommand[] = []
  const line = (way: Way, args: readonly string[], environment: Environment = {}): CommandLine =>
    way === 'locally'
      ? [args, { ...books, ...environment }]
      : // The data directory is a folder without books, which the command must not look into.
        [
          [...args, '--url', url, '--admin-key-file', keyFile],
          { TOLLGATE_DATA_DIR: join(dataDir, 'nowhere'), ...environment },
        ]
  const start: CommandBench['start'] = (way, args, { environment, ...options } = {}) => {
    const command = startCommand(...line(way, args, environment), options)
    started.push(command)
    return command
  }
  return {
    gateway,
    start,
    run: (way, args, how = {}) =>
      how.input === undefined && how.terminal === undefined
        ? runInThread(...line(way, args, how.environment))
        : start(way, args, how).finished,
    async api(path) {
      const authorization = `Bearer ${readFileSync(keyFile, 'utf8').trim()}`
      return await (await fetch(url + path, { headers: { authorization } })).text()
    },
    async close() {
      // Commands of a test that failed may still run.
      for (const command of started) command.signal('SIGKILL')
      await gateway.close()
    },
  }
}

/** A wrong command line, and the message of the command. */
export type WrongLine = readonly [args: readonly string[], message: RegExp]

/** Each command line ends with 2, prints nothing, and complains with its message. */
export async function assertAllWrong(
  bench: CommandBench,
  command: string,
  lines: readonly WrongLine[],
): Promise<void> {
  for (const [args, message] of lines) {
    const wrong = await bench.run('locally', [command, ...args])
    assert.deepEqual([wrong.code, wrong.stdout], [2, ''], args.join(' '))
    assert.match(wrong.stderr, message, args.join(' '))
  }
}
