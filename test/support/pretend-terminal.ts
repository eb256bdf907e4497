/** Loaded before a command: its output is a pipe, and it takes it for a terminal. */
for (const stream of [process.stdout, process.stderr]) {
  Object.defineProperties(stream, {
    isTTY: { value: true },
    columns: { value: Number(process.env['TEST_COLUMNS']) },
  })
}
