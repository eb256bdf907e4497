/** Nobody reads the output any more, as behind `| head`: there is nothing left to do, and nothing went wrong. */
export class ReaderGone extends Error {}

/** The output could not be written: half of an export must not pass for the whole. */
export class OutputFailed extends Error {}

/** Writes to standard output and resolves when there is room for more. */
export function print(chunk: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => {
      const isGone = 'code' in error && error.code === 'EPIPE'
      reject(isGone ? new ReaderGone() : new OutputFailed(`the output cannot be written: ${error.message}`))
    }
    try {
      process.stdout.write(chunk, (error) => {
        if (error === null || error === undefined) resolve()
        else fail(error)
      })
    } catch (error) {
      // A file is written at once, and throws.
      fail(error as Error)
    }
  })
}
