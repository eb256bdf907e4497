/** Nobody reads the output any more, as behind `| head`: there is nothing left to do, and nothing went wrong. */
export class ReaderGone extends Error {}

/** Writes to standard output and resolves when there is room for more. */
export function print(chunk: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(chunk, (error) => {
      if (error === null || error === undefined) return resolve()
      // A full disk is another matter: half of an export must not pass for the whole.
      reject('code' in error && error.code === 'EPIPE' ? new ReaderGone() : error)
    })
  })
}
