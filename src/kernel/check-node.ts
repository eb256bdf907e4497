// The first import of every entry point: an old Node.js gets a clear message instead of a stack trace. This file must
// load on any version.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 24 || (major === 24 && minor < 5)) {
  process.stderr.write(`Tollgate needs Node.js 24.5 or later; this is ${process.versions.node}.\n`)
  process.exit(1)
}

export {}
