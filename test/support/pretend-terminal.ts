/** Loaded before a command: its output is a pipe, and it takes it for a terminal. */
const { columns, only } = JSON.parse(process.env['PRETEND_TERMINAL'] ?? '{}')
for (const stream of only === 'stderr' ? [process.stderr] : [process.stdout, process.stderr]) {
  Object.defineProperties(stream, { isTTY: { value: true }, columns: { value: columns } })
}
