import { appendFileSync } from 'node:fs'
import { getHeapStatistics } from 'node:v8'

/** Loaded first into each thread of a process: how many megabytes its heap may take, a line each in a file. */
const file = process.env['HEAP_LIMITS_FILE']
const megabytes = getHeapStatistics().heap_size_limit / (1024 * 1024)
if (file !== undefined) appendFileSync(file, `${megabytes}\n`)
