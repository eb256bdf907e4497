import { JsonLines } from '../metering/json-lines.ts'
import { GLANCE, objectShape, type Shape } from '../metering/json-shape.ts'
import {
  type Delivered,
  type Metered,
  nothingDelivered,
  type ReplyDocument,
  type ReplyReader,
  SilentMeter,
} from '../metering/meter.ts'
import { ReplyJson } from '../metering/reply-json.ts'
import { meterDocument } from '../metering/reply-meter.ts'
import type { UsageReader } from './endpoint.ts'
import { READERS } from './surfaces.ts'
import { isObject, objectAt } from './usage/reading.ts'

/** Reads the results of a batch as they pass, for the usage of each request that succeeded. Other requests cost nothing. */
export class BatchResults {
  readonly #lines: JsonLines
  readonly #createReader: ((output: Delivered) => ReplyReader) | null
  readonly #onSucceeded: (metered: Metered) => void

  /** `reader` is the reader of replies of the endpoint that the requests are for. */
  constructor(reader: UsageReader, onSucceeded: (metered: Metered) => void) {
    this.#createReader = READERS[reader]?.create ?? null
    this.#onSucceeded = onSucceeded
    const shape = lineShape(this.#createReader?.(nothingDelivered()).layout.body ?? GLANCE)
    let line = new ReplyJson(shape)
    this.#lines = new JsonLines({
      write: (bytes) => line.write(bytes),
      failed: false,
      end: () => {
        const document = line.end()
        line = new ReplyJson(shape)
        return typeof document !== 'string' && this.#endLine(document)
      },
    })
  }

  write(chunk: Buffer): void {
    this.#lines.write(chunk)
  }

  /** Whether all lines could be read. */
  end(): boolean {
    return this.#lines.end()
  }

  #endLine(document: ReplyDocument): boolean {
    if (!isObject(document.value)) return false
    const { result, response } = document.value
    const isMessage = isObject(result)
    const status = Number(objectAt(response)['status_code'])
    if (isMessage ? result['type'] !== 'succeeded' : !(status >= 200 && status < 300)) return true
    const value = isMessage ? result['message'] : objectAt(response)['body']
    const output = nothingDelivered()
    const reader = this.#createReader?.(output)
    this.#onSucceeded(
      reader === undefined
        ? new SilentMeter().end(true)
        : meterDocument(reader, output, { ...document, value }),
    )
    return true
  }
}

/** A line of the results of a batch, of Messages and of Chat. */
function lineShape(body: Shape): Shape {
  return objectShape({
    result: objectShape({ type: GLANCE, message: body }),
    response: objectShape({ status_code: GLANCE, body }),
  })
}
